#!/usr/bin/env python3
"""schema.py [--path DIR]: validates answers against `assay schema` with an independent validator (python3-jsonschema).

Every answer in tests/golden/, every answer to the requests of tests/golden/requests.txt, every command of tests/cli/
that asks for JSON, and requests drawn by tests/everyday.sh: no key that is not declared in catalogue/answers/, no
promised key missing, and every `arguments` in an answer a valid request. `assay json` gives the same answers, and declared defaults hold.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jsonschema import Draft202012Validator

top = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("--path", default=top / "build/release", type=Path)
assay = str(parser.parse_args().path.resolve() / "assay")
environment = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "XDG_"))}
environment |= {"LC_ALL": "C.UTF-8", "HOME": tempfile.mkdtemp()}
environment["PATH"] = os.path.dirname(assay) + ":" + environment["PATH"]
faults = []
checked = 0


def fault(where, what):
    faults.append(f"{where}: {what}")


def run(arguments, folder=top, text=None):
    done = subprocess.run(arguments, cwd=folder, env=environment, input=text, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode()


schema = json.loads(run([assay, "schema"])[1])
Draft202012Validator.check_schema(schema)
validators = {}


def errors(definition, instance):
    if definition not in validators:
        whole = dict(schema, **{"$ref": f"#/$defs/{definition}"})
        del whole["anyOf"]
        validators[definition] = Draft202012Validator(whole)
    return list(validators[definition].iter_errors(instance))


def told(error):
    path = ".".join(str(part) for part in error.absolute_path)
    return f"{path}: {error.message[:200]}"


def requests_in(value, verb):
    """Every object with `arguments`, as a request: of its own verb, or of the answer's."""
    if isinstance(value, list):
        for item in value:
            yield from requests_in(item, verb)
    elif isinstance(value, dict):
        if isinstance(value.get("arguments"), dict):
            yield {"verb": value.get("verb", verb), "arguments": value["arguments"]}
        for key, item in value.items():
            if key != "arguments":
                yield from requests_in(item, verb)


def check(where, answer):
    global checked
    checked += 1
    if "error" in answer:
        for error in errors("error", answer):
            fault(where, told(error))
        return
    verb = answer["inputs"]["verb"]
    for error in errors(f"{verb}.answer", answer)[:3]:
        fault(where, told(error))
    inputs = {key: value for key, value in answer["inputs"].items() if key != "verb"}
    for request in [{"verb": verb, "arguments": inputs}, *requests_in(answer["results"], verb)]:
        for error in errors(f"{request['verb']}.request", request)[:1]:
            fault(where, "request: " + told(error))


def golden():
    answers = {}
    for line in (top / "tests/golden/requests.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, command = line.split(": ", 1)
        words = shlex.split(command)
        answers[name] = run([assay, *words, "--format", "json"])[1]
        check(name, json.loads(answers[name]))
    for file in sorted((top / "tests/golden").glob("*.json")):
        check(file.name, json.loads(file.read_text()))
    return answers


def lines(answers):
    """`assay json` answers the same requests with the same text, but for its layout."""
    requests, expected = [], []
    for text in answers.values():
        answer = json.loads(text)
        arguments = {key: value for key, value in answer["inputs"].items() if key != "verb"}
        if "derivation" in answer:
            arguments["explain"] = True
        requests.append(json.dumps({"verb": answer["inputs"]["verb"], "arguments": arguments}))
        expected.append(answer)
    output = run([assay, "json"], text="\n".join(requests).encode())[1].splitlines()
    if len(output) != len(expected):
        fault("assay json", f"{len(output)} answers to {len(expected)} requests")
    for request, line, answer in zip(requests, output, expected):
        if json.loads(line) != answer:
            fault("assay json", f"another answer than the command line's to {request}")


def commands(file):
    text = re.sub(r"\\\n", "", file.read_text())
    return [line[2:] for line in text.splitlines() if line.startswith("$ ")]


def command_line_tests():
    for file in sorted((top / "tests/cli").glob("*.test")):
        if not any("--format json" in command for command in commands(file)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if file.with_suffix("").is_dir():
                shutil.copytree(file.with_suffix(""), folder, dirs_exist_ok=True)
            for command in commands(file):
                wanted = command.startswith("assay ") and "--format json" in command
                if command.startswith("assay ") and not wanted:
                    continue
                command = command.split(" | ")[0].split(" > ")[0] if wanted else command
                output = run(["bash", "-c", command], folder)[1]
                if wanted and output.startswith("{\n  \""):
                    answer = json.JSONDecoder().raw_decode(output)[0]  # more commands may follow on the line
                    if "error" in answer or "verb" in answer["inputs"]:
                        check(f"{file.name}: {command}", answer)


def everyday():
    drawn = run([str(top / "tests/everyday.sh"), "--show", "--count", "30", "--seed", "7"])[1]
    for line in drawn.splitlines():
        words = shlex.split(line)
        if words[:1] == ["assay"]:
            words = words[1:]
        for option in ("--output", "--format"):
            while option in words and not words[words.index(option) + 1].isdigit():
                at = words.index(option)
                del words[at : at + 2]
        output = run([assay, *words, "--format", "json"])[1]
        if output.startswith("{"):
            check(line, json.loads(output))


def is_strict(answers):
    """The schema notices an undeclared key and a missing one, and what a request may not hold."""
    answer = json.loads(answers["train-fixed"])
    for path in ([], ["memory"], ["strategy"]):
        for change in ("added", "removed"):
            broken = json.loads(json.dumps(answer))
            part = broken["results"]
            for key in path:
                part = part[key]
            if change == "added":
                part["undeclared"] = 1
            else:
                del part[{"": "step_time", "memory": "verdict", "strategy": "tp"}["".join(path)]]
            if not errors("train.answer", broken):
                fault("train.answer", f"a key {change} in results {path} goes unnoticed")
    good = {"verb": "train", "arguments": {"model": "gpt2", "on": "h100-sxm:8", "batch": "64seq", "tp": 2, "zero": 1}}
    if errors("request", good):
        fault("request", "a good request is refused")
    for change in ({"tpp": 2}, {"zero": 4}, {"graphs": "maybe"}, {"tp": []}, {"capacity": 1.5, "expert-load": 2}):
        if not errors("train.request", {"verb": "train", "arguments": good["arguments"] | change}):
            fault("train.request", f"{change} goes unnoticed")


def found(value):
    """What an answer found, less the words of the request in it, and who set what."""
    words = ("arguments", "search", "request", "software_properties")
    if isinstance(value, list):
        return [found(item) for item in value]
    if isinstance(value, dict):
        return {key: found(item) for key, item in value.items() if key not in words}
    return value


def defaults():
    """What the schema calls a default is what holds where the option is left out."""
    bases = [
        ("train", {"model": "llama-3-8b", "on": "h100-sxm:8", "batch": "64seq", "seq": 4096, "fsdp": 8}),
        ("train", {"model": "mixtral-8x7b", "on": "h100-sxm:64", "batch": "64seq", "seq": 4096, "ep": 8, "tokens": "1T"}),
        ("serve", {"model": "llama-3-8b", "on": "h100-sxm:1", "batch": 8}),
        ("roofline", {"op": "bf16[B,8192] @ bf16[8192,8192]", "on": "h100-sxm"}),
        ("collective", {"kind": "all-gather", "bytes": "1GB", "on": "h100-sxm:8"}),
        ("scaling", {"model": "llama-3-70b", "on": "tpu-v5p:16x16x16"}),
        ("models", {"model": "llama-3-8b", "seq": 4096}),
        ("layer", {"one": True, "sizes": "I=4096,J=8192,K=8192", "on": "tpu-v5e:4x4"}),
        ("systolic", {"M": 8, "K": 128, "N": 128}),
    ]
    for verb, base in bases:
        options = schema["$defs"][f"{verb}.request"]["properties"]["arguments"]["properties"]
        tried = [{}] + [{name: option["default"]} for name, option in options.items() if "default" in option]
        requests = [json.dumps({"verb": verb, "arguments": other | base}) for other in tried]
        output = [json.loads(line) for line in run([assay, "json"], text="\n".join(requests).encode())[1].splitlines()]
        for other, answer in zip(tried, output):
            if "error" not in answer and found(answer["results"]) != found(output[0]["results"]):
                fault(f"{verb}.request", f"{other} is not the default: the answer changes")


answers = golden()
defaults()
lines(answers)
command_line_tests()
everyday()
is_strict(answers)
print("\n".join(faults[:60]))
print(f"{checked} answers, {len(faults)} faults")
sys.exit(1 if faults else 0)
