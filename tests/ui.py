#!/usr/bin/env python3
"""ui.py [--path DIR]: `assay ui` from outside: answers equal those of `assay json` byte by byte, other sites and other
names get nothing, no request harms another one, and the server stops when it is told to."""
import argparse
import concurrent.futures
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

top = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("--path", default=top / "build/release", type=Path)
assay = str(parser.parse_args().path.resolve() / "assay")
environment = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "XDG_"))}
environment |= {"LC_ALL": "C.UTF-8", "HOME": tempfile.mkdtemp()}

quick = {"verb": "chips", "arguments": {"id": "h100-sxm"}}
# Takes seconds: long enough to be interrupted.
slow = {"verb": "validate", "arguments": {"set": "training"}}


class Server:
    def __init__(self, *options):
        words = [assay, "ui", "--port", "0", *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True)
        self.address = self.process.stdout.readline().strip()
        self.host, port, self.token = re.fullmatch(r"http://(.*):(\d+)/(?:\?token=(\w+))?", self.address).groups()
        self.port = int(port)

    def ask(self, method, path, body=None, headers={}, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    def api(self, request, **more):
        body = request if isinstance(request, (str, bytes)) else json.dumps(request)
        return self.ask("POST", "/api", body, **more)

    def raw(self, text, timeout=5):
        """What the server sends until it closes the connection or says nothing more for a second."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as client:
            client.sendall(text)
            client.settimeout(1)
            content = b""
            try:
                while more := client.recv(65536):
                    content += more
            except TimeoutError:
                pass
            return content

    def workers(self):
        tasks = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return {int(word) for word in tasks.split()}

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=10)
        self.process.stdout.close()
        return code


def until(condition, seconds=5):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def golden_requests():
    for file in sorted((top / "tests/golden").glob("*.json")):
        answer = json.loads(file.read_text())
        arguments = {key: value for key, value in answer["inputs"].items() if key != "verb"}
        if "derivation" in answer:
            arguments["explain"] = True
        yield json.dumps({"verb": answer["inputs"]["verb"], "arguments": arguments})


class WithServer(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def refused(self, status, response, content, where=None):
        self.assertEqual(response.status, status, content[:200])
        error = json.loads(content)["error"]
        if where is not None:
            self.assertEqual(error["where"], where)
        return error


class Answers(WithServer):
    requests = [
        *golden_requests(),
        json.dumps({"verb": "train", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:8", "batch": "64seq", "seq": 4096, "explain": True}}),
        json.dumps({"verb": "serve", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1", "prompt": 1024, "output": 256}}),
        json.dumps({"verb": "train", "arguments": {"model": "llama-3-70b", "on": "tpu-v5e:2x2", "batch": "16seq", "seq": 4096}}),
        '{"verb": "chips", "arguments": {"id": "h1000"}}',
        '{"verb": "train", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1000000000000000000", "batch": 1}}',
        '{"verb": "tarin"}',
        '{"verb": "chips", "arguments": {"id": "\\u0000"}}',
        "nonsense",
        "[" * 10000,
        '{"verb": "chips", "arguments": {"format": "csv"}}',
    ]

    def test_equal_those_of_assay_json(self):
        lines = subprocess.run([assay, "json"], input="\n".join(self.requests), capture_output=True, text=True,
                               env=environment).stdout.splitlines()
        self.assertEqual(len(lines), len(self.requests))
        for request, line in zip(self.requests, lines):
            response, content = self.server.api(request)
            self.assertEqual(content.decode(), line + "\n", request[:200])
            self.assertEqual(response.status, 400 if line.startswith('{"error"') else 200)
            self.assertEqual(response.headers["Content-Type"], "application/json")

    def test_bytes_that_are_no_text_get_the_same_error(self):
        response, content = self.server.api(b'{"verb": "\xff"}')
        self.assertIn("not UTF-8", self.refused(400, response, content)["what"])

    def test_files_are_refused(self):
        for arguments in ({"model": "@/etc/passwd"}, {"model": "/etc/passwd"}, {"model": "gpt2", "on": "@/etc/passwd"},
                          {"model": "gpt2", "catalogue": "/etc"}, {"model": "gpt2", "config": "/etc/passwd"},
                          {"model": "gpt2", "from": "/etc/passwd"}, {"model": "gpt2", "output": "/tmp/x.svg"},
                          {"model": "gpt2", "timeline": "/tmp/x.json"}):
            base = {"on": "h100-sxm:8", "batch": "64seq"}
            response, content = self.server.api({"verb": "train", "arguments": base | arguments})
            self.refused(400, response, content)
        response, content = self.server.api({"verb": "measure"})
        self.refused(400, response, content)

    def test_many_at_once_get_their_own(self):
        chips = ["h100-sxm", "tpu-v5e", "tpu-v5p", "a100-sxm-80", "mi300x", "b200"] * 20
        asked = lambda id: json.loads(self.server.api({"verb": "chips", "arguments": {"id": id}})[1])["inputs"]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            for id, inputs in zip(chips, pool.map(asked, chips)):
                self.assertEqual(inputs["id"], id)

    def test_connections_are_kept_and_requests_may_follow_at_once(self):
        ask = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        post = b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
        body = json.dumps(quick).encode()
        content = self.server.raw(ask + post % (len(body), body) + ask)
        self.assertEqual(content.count(b"HTTP/1.1 200 OK"), 3)
        self.assertEqual(content.count(b'{"engine":"native"'), 2)

    def test_health_schema_and_page(self):
        version = subprocess.run([assay, "version"], capture_output=True, text=True).stdout.split()[1]
        self.assertEqual(json.loads(self.server.ask("GET", "/health")[1]), {"engine": "native", "version": version})
        for verb in ([], ["train"]):
            text = subprocess.run([assay, "schema", *verb], capture_output=True).stdout
            self.assertEqual(self.server.ask("GET", "/".join(["/schema", *verb]))[1], text)
        self.assertEqual(self.server.ask("GET", "/schema/trian")[0].status, 404)
        response, content = self.server.ask("GET", "/")
        self.assertEqual(response.status, 200)
        self.assertEqual(int(self.server.ask("HEAD", "/")[0].headers["Content-Length"]), len(content))
        page = top / "page/dist"
        for file in page.rglob("*"):
            if file.is_file():
                self.assertEqual(self.server.ask("GET", f"/{file.relative_to(page)}")[1], file.read_bytes())
        for path in ("/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "//", "/index.html/"):
            self.assertEqual(self.server.ask("GET", path)[0].status, 404)

    def test_recorded_answers_are_those_of_the_engine(self):
        request = json.dumps({"verb": "validate", "arguments": {"by": "hardware", "set": "inference-ttft"}})
        printed = subprocess.run([assay, "json"], input=request.encode(), capture_output=True, env=environment).stdout
        response, content = self.server.ask("GET", "/answers/inference-ttft.json")
        if response.status == 404:  # a build that is too slow for it
            self.skipTest("not recorded")
        self.assertEqual(content, printed)
        with tempfile.TemporaryDirectory() as folder:
            environment["ASSAY_CATALOGUE"] = folder
            own = Server()
            del environment["ASSAY_CATALOGUE"]
            self.addCleanup(own.stop)
            self.assertEqual(own.ask("GET", "/answers/inference-ttft.json")[0].status, 404)

    def test_files_are_packed_and_sent_once(self):
        for path in ("/", "/app.js", "/style.css", "/schema/train"):
            response, plain = self.server.ask("GET", path)
            self.assertIsNone(response.headers["Content-Encoding"])
            self.assertIn("GMT", response.headers["Date"])
            tag = response.headers["ETag"]
            for accepted in ("gzip", "br, GZIP;q=0.5"):
                response, content = self.server.ask("GET", path, headers={"Accept-Encoding": accepted})
                if len(plain) < 1400:
                    continue
                self.assertEqual(response.headers["Content-Encoding"], "gzip", path)
                self.assertEqual(gzip.decompress(content), plain)
                self.assertEqual((response.headers["ETag"], response.headers["Vary"]), (tag, "Accept-Encoding"))
            self.assertIsNone(self.server.ask("GET", path, headers={"Accept-Encoding": "gzip;q=0"})[0].headers["Content-Encoding"])
            response, content = self.server.ask("GET", path, headers={"If-None-Match": tag})
            self.assertEqual((response.status, content), (304, b""))
            self.assertEqual(self.server.ask("GET", path, headers={"If-None-Match": '"other"'})[1], plain)
        self.assertEqual(self.server.api(quick)[0].headers["Cache-Control"], "no-store")

    def test_every_response_keeps_the_page_to_its_origin(self):
        for path in ("/", "/health", "/nothing"):
            headers = self.server.ask("GET", path)[0].headers
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertIsNone(headers["Access-Control-Allow-Origin"])


class Access(WithServer):
    def test_only_for_its_own_names(self):
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"):
            self.refused(403, *self.server.ask("GET", "/health", headers={"Host": host}), "Host")
            self.refused(403, *self.server.api(quick, headers={"Host": host}), "Host")
        for host in ("localhost", f"localhost:{self.server.port}", "127.0.0.1:9", "[::1]:80"):
            self.assertEqual(self.server.ask("GET", "/health", headers={"Host": host})[0].status, 200)
        self.assertTrue(self.server.raw(b"GET /health HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403"))

    def test_only_for_its_own_page(self):
        own = f"http://127.0.0.1:{self.server.port}"
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{self.server.port}", "http://127.0.0.1:1", own + ".evil.example"):
            self.refused(403, *self.server.api(quick, headers={"Origin": origin}), "Origin")
        self.assertEqual(self.server.api(quick, headers={"Origin": own})[0].status, 200)
        cross = {"Sec-Fetch-Site": "cross-site"}
        self.refused(403, *self.server.ask("GET", "/app.js", headers=cross | {"Sec-Fetch-Mode": "no-cors"}), "Origin")
        self.refused(403, *self.server.api(quick, headers=cross | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}), "Origin")
        followed = cross | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        self.assertEqual(self.server.ask("GET", "/", headers=followed)[0].status, 200)

    def test_methods(self):
        for method, path in (("GET", "/api"), ("POST", "/"), ("OPTIONS", "/api"), ("DELETE", "/health")):
            response, content = self.server.ask(method, path)
            self.refused(405, response, content)
            self.assertIn("Allow", response.headers)


class Token(WithServer):
    options = ("--listen", "127.0.0.1", "--allowed-host", "assay.example", "--allowed-host=Second.Example")

    def test_further_names_can_be_allowed(self):
        bearer = {"Authorization": f"Bearer {self.server.token}"}
        for host in ("assay.example", "ASSAY.example:8017", "second.example"):
            self.assertEqual(self.server.api(quick, headers=bearer | {"Host": host})[0].status, 200)
        self.refused(403, *self.server.api(quick, headers=bearer | {"Host": "x.assay.example"}), "Host")

    def test_answers_are_packed_on_their_way(self):
        bearer = {"Authorization": f"Bearer {self.server.token}"}
        response, content = self.server.api(quick, headers=bearer | {"Accept-Encoding": "gzip"})
        self.assertEqual(response.headers["Content-Encoding"], "gzip")
        self.assertEqual(gzip.decompress(content), self.server.api(quick, headers=bearer)[1])
        response, content = self.server.api({"verb": "tarin"}, headers=bearer | {"Accept-Encoding": "gzip"})
        self.refused(400, response, content)

    def test_is_required_once(self):
        self.assertGreaterEqual(len(self.server.token), 32)
        for headers in ({}, {"Authorization": "Bearer " + "0" * 64}, {"Authorization": f"Bearer {self.server.token}0"}, {"Authorization": f"Bearer {self.server.token[:-1]}"},
                        {"Cookie": f"assay_{self.server.port}="}, {"Authorization": "Bearer "}):
            for method, path in (("POST", "/api"), ("GET", "/"), ("GET", "/health"), ("GET", "/?token=0"), ("GET", "/?token=")):
                self.refused(401, *self.server.ask(method, path, json.dumps(quick) if method == "POST" else None, headers), "token")
        self.assertEqual(self.server.api(quick, headers={"Authorization": f"Bearer {self.server.token}"})[0].status, 200)
        response, _ = self.server.ask("GET", f"/?token={self.server.token}")
        self.assertEqual((response.status, response.headers["Location"]), (303, "/"))
        cookie = response.headers["Set-Cookie"]
        self.assertRegex(cookie, "HttpOnly; SameSite=")
        self.assertEqual(self.server.ask("GET", "/", headers={"Cookie": "a=b; " + cookie.split(";")[0]})[0].status, 200)

    def test_does_not_open_other_doors(self):
        bearer = {"Authorization": f"Bearer {self.server.token}"}
        self.refused(403, *self.server.api(quick, headers=bearer | {"Host": "evil.example"}), "Host")
        self.refused(403, *self.server.api(quick, headers=bearer | {"Origin": "http://evil.example"}), "Origin")


def form(request, *files):
    """A body of several parts, and the headers that announce it."""
    body = b'--limit\r\nContent-Disposition: form-data; name="request"\r\n\r\n' + json.dumps(request).encode()
    for name, content in files:
        body += b'\r\n--limit\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n' % name.encode()
        body += b"Content-Type: application/octet-stream\r\n\r\n" + content
    return body + b"\r\n--limit--\r\n", {"Content-Type": "multipart/form-data; boundary=limit"}


class Files(WithServer):
    """Files that come with a request."""
    profiles = top / "tests/data/profiles"

    def send(self, request, *files):
        body, headers = form(request, *files)
        return self.server.ask("POST", "/api", body, headers)

    def test_profiles_are_read(self):
        for names in (["llama8b-4l-train.kineto.json.gz"], ["two-steps.json", "two-steps-rank1.json"], ["two-kernels.sqlite"],
                      ["two-steps.xplane.pb"]):
            request = {"verb": "profile", "arguments": {"file": names}}
            response, content = self.send(request, *[(name, (self.profiles / name).read_bytes()) for name in names])
            self.assertEqual(response.status, 200, content)
            printed = subprocess.run([assay, "json"], input=json.dumps(request) + "\n", capture_output=True, text=True,
                                     env=environment, cwd=self.profiles).stdout
            self.assertEqual(content.decode(), printed)

    def test_only_what_was_sent(self):
        path = str(self.profiles / "two-steps.json")
        request = {"verb": "profile", "arguments": {"file": path}}
        self.refused(400, *self.server.api(request), where="file")
        self.refused(400, *self.send(request, ("other.json", b"{}")), where="file")
        # What is sent is no file for options that read or write others.
        for more in ({"on": "@x.toml"}, {"perfetto": "x.toml"}, {"catalogue": "x.toml"}, {"against": "@x.toml"},
                     {"against": " @x.toml"}, {"against": "train llama-3-8b --on h200-sxm --from x.toml"},
                     {"against": '{"verb": "train", "arguments": {"model": "llama-3-8b", "on": "@x.toml"}}'}):
            one = {"verb": "profile", "arguments": {"file": "a.json", **more}}
            self.refused(400, *self.send(one, ("a.json", b"{}"), ("x.toml", b""), ("@x.toml", b"")))
        self.refused(400, *self.send({"verb": "models", "arguments": {"id": "@/etc/passwd"}}, ("@/etc/passwd", b"{}")))

    def test_archives_are_bounded(self):
        bomb = gzip.compress(b" " * (80 << 20))
        error = self.refused(400, *self.send({"verb": "profile", "arguments": {"file": "a"}}, ("a", bomb)))
        self.assertIn("times as large as the file", error["what"])

    def test_scripts_are_read_as_text_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            secret = Path(folder) / "secret.yaml"
            secret.write_text("tensor_model_parallel_size: 2\n")
            options = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16"
            for line in (f"torchrun pretrain_gpt.py {options}\n", f". {secret}\ntorchrun pretrain_gpt.py {options}\n",
                         f"torchrun pretrain_gpt.py {options} --yaml-cfg {secret}\n"):
                request = {"verb": "train", "arguments": {"from": line, "on": "h100-sxm:8"}}
                response, content = self.server.api(request)
                self.assertEqual(response.status, 200, content[:300])
                self.assertNotIn(b"tensor_model_parallel_size", content.replace(line.encode(), b""))
            self.refused(400, *self.server.api({"verb": "train", "arguments": {"from": str(secret), "on": "h100-sxm:8"}}))
            existing = f"torchrun pretrain_gpt.py --load {folder}\n"
            missing = existing.replace(folder, folder + "x")
            answers = [self.server.api({"verb": "train", "arguments": {"from": text, "on": "h100-sxm:8"}})[1].decode().replace(name, "")
                       for text, name in ((existing, folder), (missing, folder + "x"))]
            self.assertEqual(*answers)  # whether a file exists is not told

    def test_what_is_no_form(self):
        _, headers = form(quick)
        for body in (b"", b"--limit", b"--limit\r\n\r\n", b"--limit--", b"--other\r\n\r\nx\r\n--other--"):
            self.refused(400, *self.server.ask("POST", "/api", body, headers))
        damaged = (self.profiles / "llama8b-4l-train.kineto.json.gz").read_bytes()[:2000]
        self.refused(400, *self.send({"verb": "profile", "arguments": {"file": "a"}}, ("a", damaged)))

    def test_sizes(self):
        large = b"x" * (20 << 20)
        self.refused(400, *self.send({"verb": "profile", "arguments": {"file": "a"}}, ("a", large)))
        self.assertIn(b" 413 ", self.server.raw(b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
                                                b"boundary=x\r\nContent-Length: 67108865\r\n\r\n"))
        self.assertEqual(self.server.api(quick)[0].status, 200)


class Bounds(WithServer):
    options = ("--workers", "2", "--time-limit", "1s")

    def alive(self):
        self.assertEqual(self.server.api(quick)[0].status, 200)

    def test_size(self):
        self.refused(413, *self.server.api("x" * ((1 << 20) + 1)))
        self.refused(400, *self.server.api("x" * (1 << 20)))
        self.assertIn(b" 431 ", self.server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n"))
        self.assertIn(b" 431 ", self.server.raw(b"x" * 20000))
        self.alive()

    def test_what_is_no_http(self):
        for text in (b"\0\0\0\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                     b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 300):
            self.assertRegex(self.server.raw(text), rb"^HTTP/1.1 (400|411|505) ", text)
        self.alive()

    def test_bodies_in_chunks(self):
        head = b"POST /api HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = json.dumps(quick).encode()
        pieces = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in (body[:1], body[1:20], body[20:]))
        content = self.server.raw(head + pieces + b"0\r\nA: b\r\n\r\n" + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(content.count(b"HTTP/1.1 200 OK"), 2)
        self.assertIn(self.server.api(quick)[1], content)
        self.assertIn(b" 413 ", self.server.raw(head + b"%x\r\n" % ((1 << 20) + 1)))
        self.alive()

    def test_a_body_is_asked_for(self):
        head = b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        self.assertTrue(self.server.raw(head).startswith(b"HTTP/1.1 100 "))

    def test_time(self):
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            late = pool.submit(self.server.api, slow)
            time.sleep(0.2)
            self.alive()  # the other worker is free
            error = self.refused(504, *late.result())
        self.assertIn("no answer within 1 s", error["what"])
        self.assertLess(time.monotonic() - start, 5)
        self.alive()

    def test_a_worker_that_dies_is_replaced(self):
        before = self.server.workers()
        self.assertEqual(len(before), 2)
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        self.assertTrue(until(lambda: len(self.server.workers()) == 2 and not self.server.workers() & before))
        self.alive()
        # One that dies at work: the error has the request attached.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for_report = pool.submit(self.server.api, slow)
            time.sleep(0.3)
            for worker in self.server.workers():
                os.kill(worker, signal.SIGSEGV)
            response, content = for_report.result()
        self.assertEqual(self.refused(500, response, content)["kind"], "internal")
        self.assertEqual(json.loads(json.loads(content)["request"]), slow)
        self.alive()

    def test_nobody_waits_for_clients_that_have_gone(self):
        body = json.dumps(slow).encode()
        for _ in range(2):
            before = self.server.workers()
            with socket.create_connection(("127.0.0.1", self.server.port)) as client:
                client.sendall(b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                time.sleep(0.2)
            self.assertTrue(until(lambda: len(self.server.workers() - before) == 1, 0.7))
        self.alive()

    def test_the_queue_is_bounded(self):
        clients = []
        body = json.dumps(slow).encode()
        for _ in range(150):
            client = socket.create_connection(("127.0.0.1", self.server.port))
            client.sendall(b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            clients.append(client)
        response, content = self.server.api(quick)
        self.refused(503, response, content)
        self.assertEqual(response.headers["Retry-After"], "2")
        for client in clients:
            client.close()
        self.assertTrue(until(lambda: self.server.api(quick)[0].status == 200))

    def test_idle_connections_make_room(self):
        idle = []
        for at in range(300):
            client = socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
            if at % 2:
                client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))
            idle.append(client)
        for _ in range(3):
            self.alive()
        for client in idle:
            client.close()

    def test_clients_are_told_that_files_fill_the_server(self):
        head = (b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
                b"Content-Length: 67000000\r\n\r\n")
        clients, said = [], b""
        for _ in range(6):
            client = socket.create_connection(("127.0.0.1", self.server.port), timeout=5)
            clients.append(client)
            try:
                client.sendall(head + b"x" * 60_000_000)
            except OSError:
                pass
        for client in clients:
            client.settimeout(0.5)
            try:
                said += client.recv(4096)
            except OSError:
                pass
            client.close()
        self.assertIn(b"HTTP/1.1 503 ", said)
        self.assertIn(b"the files of other requests fill the server", said)
        self.alive()

    def test_own_catalogues_take_no_time(self):
        chips = {f"chips/c{i}": {"base": f"c{i - 1}" if i % 8 else "h100-sxm"} for i in range(24000)}
        start = time.monotonic()
        response, content = self.server.api({"verb": "chips", "arguments": {"id": "c15", "catalogue": json.dumps(chips)}})
        self.assertEqual(response.status, 200, content[:200])
        chips = {f"chips/c{i}": {"base": f"c{i - 1}"} for i in range(1, 24000)} | {"chips/c0": {"base": "h100-sxm"}}
        for arguments in ({"id": "c23999"}, {}):
            response, content = self.server.api({"verb": "chips", "arguments": arguments | {"catalogue": json.dumps(chips)}})
            self.assertIn("more than 32 bases", self.refused(400, response, content)["what"])
        self.assertLess(time.monotonic() - start, 6)

    def test_slow_clients_are_dropped(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=15) as client:
            start = time.monotonic()
            client.sendall(b"POST /api HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            try:
                while time.monotonic() - start < 15:  # a byte now and then does not help
                    client.sendall(b"x")
                    time.sleep(0.5)
            except OSError:
                pass
            self.assertLess(time.monotonic() - start, 13)


class Memory(WithServer):
    options = ("--memory-limit", "128MiB", "--workers", "1")

    def test_is_bounded(self):
        request = {"verb": "fleet", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1", "replicas": 1, "rate": 100000, "take": "5M"}}
        error = self.refused(400, *self.server.api(request))
        self.assertIn("out of memory", error["what"])
        self.assertEqual(self.server.api(quick)[0].status, 200)


class Stopping(unittest.TestCase):
    def test_on_a_signal(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            server = Server()
            server.api(quick)
            workers = server.workers()
            idle = socket.create_connection(("127.0.0.1", server.port))
            self.assertEqual(server.stop(how), 0)
            self.assertEqual(idle.recv(1), b"")
            idle.close()
            for worker in workers:
                self.assertFalse(Path(f"/proc/{worker}").exists())

    def test_finishes_what_is_under_way(self):
        server = Server()
        request = {"verb": "serve", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1", "prompt": 1000, "output": 200, "rate": 12, "simulate": "50k"}}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.api, request)
            time.sleep(0.2)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(answer.result()[0].status, 200)

    def test_workers_do_not_outlive_a_server_that_is_killed(self):
        server = Server()
        workers = server.workers()
        server.stop(signal.SIGKILL)
        self.assertTrue(until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers)))


class Options(unittest.TestCase):
    def test_faults_are_told(self):
        taken = Server()
        for words, said in ((["--prt", "1"], "did you mean --port"), (["--port"], "missing"), (["--port", "70000"], "not a port"),
                            (["--listen", "somewhere"], "not an address"), (["--time-limit", "1"], "--time-limit"),
                            (["--memory-limit", "1MB"], "128MiB"), (["--port", str(taken.port)], "in use")):
            done = subprocess.run([assay, "ui", *words], capture_output=True, text=True, timeout=10, env=environment)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(said, done.stderr)
        taken.stop()
        for words, said in ((["--allowed-host", "x"], "--listen"), (["--open", "--listen", "127.0.0.1"], "the token")):
            done = subprocess.run([assay, "ui", *words], capture_output=True, text=True, timeout=10, env=environment)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_a_browser_is_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            program, said = Path(folder) / "xdg-open", Path(folder) / "said"
            program.write_text(f'#!/bin/sh\necho "$1" > {said}.part && mv {said}.part {said}\n')
            program.chmod(0o755)
            old = os.environ["PATH"]
            environment["PATH"] = f"{folder}:{old}"
            server = Server("--open")
            environment["PATH"] = old
            self.addCleanup(server.stop)
            self.assertTrue(until(said.exists))
            self.assertEqual(said.read_text().strip(), server.address)
            self.assertEqual(server.api(quick)[0].status, 200)

    def test_memory_of_the_machine_is_shared(self):
        server = Server("--workers", "3")
        self.addCleanup(server.stop)
        most = max(128 << 20, min(4 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 3))

        def bounded(worker):
            line = re.search(r"Max address space +(\d+)", Path(f"/proc/{worker}/limits").read_text())
            return line is not None and int(line.group(1)) <= most

        self.assertTrue(until(lambda: all(bounded(worker) for worker in server.workers())))


if __name__ == "__main__":
    unittest.main(argv=["ui.py"])
