#!/usr/bin/python3
"""module.py ASSAY: tests of the Python module that is in PYTHONPATH, against the program ASSAY."""
import json
import keyword
import math
import os
import pickle
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

for variable in [name for name in os.environ if name.startswith(("ASSAY_", "XDG_"))]:
    del os.environ[variable]
os.environ["HOME"] = tempfile.mkdtemp()

import assay  # noqa: E402
from assay._answers import in_words_of_python  # noqa: E402

top = Path(__file__).resolve().parent.parent.parent
program = str(Path(sys.argv.pop()).resolve())


def printed(*words):
    return subprocess.run([program, *words], capture_output=True, cwd=top).stdout


def python_names(arguments):
    """Names as functions take them."""
    return {f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_"): value for name, value in arguments.items()}


class Parity(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(top)  # requests name files from there

    def test_answers_are_the_bytes_that_the_program_prints(self):
        requests = [line.split(": ", 1) for line in (top / "tests/golden/requests.txt").read_text().splitlines() if line and line[0] != "#"]
        self.assertGreater(len(requests), 50)
        for name, command in requests:
            with self.subTest(name):
                expected = printed(*shlex.split(command), "--format", "json")
                inputs = json.loads(expected)["inputs"]
                function = getattr(assay, inputs.pop("verb"))
                explain = {"explain": True} if "--explain" in command else {}
                self.assertEqual(function(**python_names(inputs), **explain).json, expected)

    def test_errors_are_those_of_the_program(self):
        for verb, arguments in [
            ("chips", {"id": "h1000"}),
            ("train", {"model": "llama-3-8b", "on": "h100-sxm:8"}),
            ("train", {"model": "llama-3-8b", "on": "h100-sxm:1000000000000000000", "batch": "8seq"}),
            ("models", {"model": {"model_type": "llama", "num_hidden_layers": 10**9, "hidden_size": 4096}}),
            ("roofline", {"op": "\udcff", "on": "tpu-v5e"}),
            ("roofline", {"op": float("nan"), "on": "tpu-v5e"}),
            ("roofline", {"op": "x" * 3_000_000, "on": "tpu-v5e"}),
            ("models", {"model": "{" * 1000}),
            ("nonsense", {}),
        ]:
            with self.subTest(str(arguments)[:60]), self.assertRaises(assay.Error) as caught:
                assay.ask(verb, arguments)
            request = json.dumps({"verb": verb, "arguments": arguments}) + "\n"
            line = subprocess.run([program, "json"], input=request.encode(), capture_output=True, cwd=top).stdout
            fault = json.loads(line)["error"]
            error = caught.exception
            self.assertEqual(error.fault, fault)

    def test_errors_are_in_words_of_python(self):
        for arguments, text in [
            ({}, 'train: batch= is missing (tokens per step or sequences, e.g. batch="4Mi" or batch="1024seq")'),
            ({"batch": "64seq", "seq": 4096, "micro_batch": 100}, "micro_batch: 64 sequences per group cannot be split into microbatches of 100 (nearest is 64)"),
        ]:
            with self.assertRaises(assay.Error) as caught:
                assay.train("llama-3-8b", on="h100-sxm:8", **arguments)
            self.assertEqual(str(caught.exception), text)
        for words, python in [
            ("use at most --prompt 768, or --stretch to allow it", "use at most prompt=768, or stretch=True to allow it"),
            ("add --rate 10, --clients 32, or --trace FILE", "add rate=10, clients=32, or trace=FILE"),
            ("--on h100-sxm:32 --recompute full --tp N.", 'on="h100-sxm:32" recompute="full" tp=N.'),
        ]:
            self.assertEqual(in_words_of_python(words), python)

    def test_every_verb_has_a_function_with_its_options(self):
        definitions = json.loads(printed("schema"))["$defs"]
        for name in [name for name in definitions if name.endswith(".request")]:
            if name == "sweep.request":  # the module has its own
                continue
            function = getattr(assay, name.removesuffix(".request"))
            options = definitions[name]["properties"]["arguments"]["properties"]
            self.assertEqual(set(function.__code__.co_varnames), set(python_names(dict.fromkeys(options))))
            self.assertIn(definitions[name]["description"], function.__doc__)

    def test_version(self):
        version = json.loads(printed("version", "--format", "json"))["results"]
        self.assertEqual([assay.__version__, assay.__commit__, assay.__catalogue__], list(version.values()))


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = assay.train("llama-3-8b", on="h100-sxm:8", batch="64seq", seq=4096, top=1, explain=True)

    def test_results_are_attributes_with_units(self):
        data = json.loads(self.plan.json)
        results = data["results"]
        estimate = self.plan.step_time.estimate
        self.assertEqual(estimate.seconds, results["step_time"]["estimate"]["value"])
        self.assertEqual(estimate.milliseconds, 1e3 * estimate.seconds)
        self.assertEqual((estimate.unit, estimate.value, estimate / 2), ("s", float(estimate), float(estimate) / 2))
        self.assertRaises(AttributeError, lambda: estimate.bytes)
        self.assertEqual(self.plan.memory.total.gibibytes, results["memory"]["total"]["value"] / 2**30)
        self.assertEqual(self.plan.strategy.tp, results["strategy"]["tp"])
        self.assertEqual(self.plan["strategy"]["tp"], results["strategy"]["tp"])
        self.assertEqual(self.plan.to_dict(), data)
        self.assertEqual((self.plan.headline, self.plan.outcome), (data["headline"], "ok"))
        self.assertTrue(self.plan.derivation)
        self.assertIn("step_time", dir(self.plan))
        with self.assertRaisesRegex(AttributeError, "step_time"):
            self.plan.stepp_time
        self.assertEqual(pickle.loads(pickle.dumps(self.plan)), self.plan)

    def test_alternatives_are_requests(self):
        other = self.plan.alternatives[0]
        self.assertEqual(assay.train(**other.arguments).step_time.estimate, other.step_time)
        self.assertEqual(assay.ask("train", other.arguments).step_time.estimate, other.step_time)

    def test_infeasible_is_an_answer(self):
        self.assertEqual(assay.train("llama-3-70b", on="tpu-v5e:2x2", batch="16seq", seq=4096).outcome, "infeasible")

    def test_numbers(self):
        self.assertTrue(math.isnan(assay.Quantity({"value": None, "unit": "s"})))
        for value, unit, text in [
            (0.376, "s", "376 ms"), (86400, "s", "8.64e+04 s"), (0, "s", "0 s"), (5.448e10, "B", "54.48 GB"), (4194304, "tokens", "4.194 M tokens"),
            (989e12, "FLOP/s", "989 TFLOP/s"), (0.5, "USD", "0.5 USD"), (295.2, "", "295.2"), (None, "s", "nan s"), (1e30, "B", "1e+30 B"),
        ]:  # fmt: skip
            self.assertEqual(repr(assay.Quantity({"value": value, "unit": unit})), text)

    def test_arithmetic_keeps_units(self):
        step, memory = self.plan.step_time.estimate, self.plan.memory.total
        self.assertIsInstance(step, assay.Time)
        self.assertEqual(assay.Time(milliseconds=30), 0.03)
        self.assertEqual(repr(assay.Bytes(gigabytes=2) / assay.Time(seconds=4)), "500 MB/s")
        for value, kind in [
            (2 * step, assay.Time), (sum([step, step]), assay.Time), (step - 1, assay.Time), (-step, assay.Time), (memory / step, assay.Bandwidth),
            (memory / step * step, assay.Bytes), (memory / memory, float), (1 / step, assay.Frequency), (self.plan.tokens_per_second * step, assay.Tokens),
            (self.plan.flops_per_second_per_chip / (memory / step), assay.Intensity), (assay.Power(3) * step, assay.Energy), (step * step, assay.Quantity),
        ]:  # fmt: skip
            self.assertIs(type(value), kind, value)
        self.assertEqual((step * step).unit, "s·s")
        self.assertEqual(pickle.loads(pickle.dumps(step)), step)
        self.assertRaises(TypeError, lambda: step + memory)
        self.assertRaises(TypeError, lambda: assay.Time(gibibytes=3))
        self.assertRaises(TypeError, lambda: assay.Time(memory.to_dict()))
        fast = assay.serve("llama-3-8b", on="h100-sxm:1", prompt=1000, output=200, tpot=assay.Time(milliseconds=20))
        self.assertLessEqual(fast.served.time_per_token, 0.02)

    def test_parts_print_their_values(self):
        self.assertIn("tp=2", repr(self.plan.strategy))
        self.assertRegex(repr(self.plan.step_time), r"^2\.\d+ s \(ideal .* s \.\. .* s, .* \(80%\)\)$")
        self.assertIn("capacity=85.9 GB", repr(self.plan.memory))
        self.assertRegex(repr(self.plan.results), r"strategy=Results\(dp, (.|\n)*search=Results\(considered=\d+")

    def test_again_asks_with_other_arguments(self):
        self.assertEqual(self.plan.again(batch="128seq").inputs["batch"], "128seq")

    def test_a_chip_is_a_dict(self):
        own = {"base": "h100-sxm", "memory": {"hbm": {"bandwidth": "6.7 TB/s"}}}
        request = dict(batch="64seq", seq=4096, tp=8)
        expected = assay.train("llama-3-8b", on="own:8", catalogue={"chips/own": own}, **request)
        self.assertEqual(assay.train("llama-3-8b", on={**own, "count": 8}, **request), expected)
        self.assertEqual(assay.roofline("bf16[1,8192] @ bf16[8192,8192]", on={**own, "id": "mine"}).inputs["on"], "mine")

    def test_four_facts(self):
        questions = ["Does it fit?", "How fast is it?", "What limits it?", "What to change?"]
        for answer in [self.plan, assay.train("llama-3-70b", on="tpu-v5e:2x2", batch="16seq", seq=4096), assay.serve("llama-3-8b", on="h100-sxm:1", prompt=1000, output=200)]:
            self.assertEqual([fact[0] for fact in answer.four_facts()], questions)
            for fact in answer.four_facts():
                self.assertIn(fact[1].replace('"', "&quot;"), answer._repr_html_())
        self.assertEqual(assay.chips("h100-sxm").four_facts(), [])

    def test_notebooks_show_a_picture_and_a_table(self):
        self.assertEqual(self.plan._repr_svg_().encode(), printed("train", "llama-3-8b", "--on", "h100-sxm:8", "--batch", "64seq", "--seq", "4096", "--top", "1", "--format", "svg"))
        html = self.plan._repr_html_()
        self.assertIn("<svg", html)
        self.assertIn("step_time.estimate", html)
        software = assay.software()
        self.assertIsNone(software._repr_svg_())
        self.assertIn(software.headline.split()[0], software._repr_html_())

    def test_own_chips_and_models_are_dicts(self):
        chips = {"chips/mine": {"base": "h100-sxm", "memory": {"hbm": {"bandwidth": "6.7 TB/s"}}}}
        ours = assay.roofline("bf16[1,8192] @ bf16[8192,8192]", on="mine", catalogue=chips)
        theirs = assay.roofline("bf16[1,8192] @ bf16[8192,8192]", on="h100-sxm")
        self.assertAlmostEqual(theirs.time.lower / ours.time.lower, 2.0, places=3)
        self.assertEqual(ours.json, printed("roofline", "bf16[1,8192] @ bf16[8192,8192]", "--on", "mine", "--catalogue", ours.inputs["catalogue"], "--format", "json"))
        with self.assertRaises(assay.Error) as caught:
            assay.chips("mine", catalogue={"chips/mine": {"base": "h100-sxm", "memory": {"hbm": {"bandwidth": "6.7 Gb"}}}})
        self.assertTrue(caught.exception.where.startswith("chips/mine.toml:"), caught.exception.where)
        self.assertRaises(assay.Error, assay.chips, "mine", catalogue={"chips/mine": 7})
        small = assay.models({"base": "llama-3-8b", "num_hidden_layers": 16})
        self.assertLess(small.parameters.total, assay.models("llama-3-8b").parameters.total)
        self.assertEqual(assay.train({"base": "llama-3-8b", "num_hidden_layers": 16}, on="mine:8", batch="64seq", seq=4096, catalogue=chips).outcome, "ok")

    def test_files_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "step.json"
            assay.train("llama-3-8b", on="h100-sxm:8", batch="64seq", seq=4096, tp=8, timeline=trace)
            self.assertTrue(json.loads(trace.read_text()))


class Sweeps(unittest.TestCase):
    requests = [("train", {"model": "llama-3-8b", "on": f"h100-sxm:{n}", "batch": "64seq", "seq": 4096}) for n in (8, 16, 32)]

    def test_rows(self):
        rows = assay.sweep([*self.requests, ("models", {"model": "nonsense"}), {"verb": "chips", "arguments": {"id": "tpu-v5e"}}])
        self.assertEqual([row.get("chips") for row in rows[:3]], [8, 16, 32])
        self.assertEqual(rows[0]["on"], "h100-sxm:8")
        self.assertEqual(rows[1]["step_time.estimate"], assay.train(**self.requests[1][1]).step_time.estimate.seconds)
        self.assertIn("nonsense", rows[3]["error"])
        self.assertEqual(rows[4]["outcome"], "ok")
        for row in rows:
            for value in row.values():
                self.assertIsInstance(value, (str, int, float, bool, type(None)))

    def test_threads_change_nothing(self):
        self.assertEqual(assay.sweep(self.requests, threads=1), assay.sweep(self.requests * 4, threads=4)[:3])

    def test_python_goes_on_meanwhile(self):
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.001):
                ticks.append(1)

        other = threading.Thread(target=tick)
        other.start()
        assay.sweep([("train", {"model": "llama-3-70b", "on": "h100-sxm:1024", "batch": "4Mi"})] * 4, threads=1)
        done.set()
        other.join()
        self.assertGreater(len(ticks), 5)

    def test_ctrl_c_ends_it(self):
        code = "import assay; assay.sweep([('train', {'model': 'llama-3-70b', 'on': 'h100-sxm:1024', 'batch': '4Mi'})] * 10000)"
        asking = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        time.sleep(2)
        asking.send_signal(signal.SIGINT)
        self.assertIn(b"KeyboardInterrupt", asking.communicate(timeout=30)[1])


if __name__ == "__main__":
    unittest.main()
