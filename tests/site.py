#!/usr/bin/env python3
"""site.py [--path DIR] [--site DIR]: the engine as WebAssembly, run by node as a browser's worker would, gives the answers
that `assay json` prints: to the requests of tests/golden/requests.txt and to faulty ones. The C library of a browser's
engine may round a logarithm or a power otherwise in the last place, so numbers may differ by 1e-12 of themselves."""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

top = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("--path", default=top / "build/release", type=Path)
parser.add_argument("--site", default=top / "build/site", type=Path)
options = parser.parse_args()
assay = str(options.path.resolve() / "assay")
environment = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "XDG_"))}
environment |= {"LC_ALL": "C.UTF-8", "HOME": tempfile.mkdtemp()}
most = 1e-12


def run(words, text=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, env=environment, timeout=600)


def golden_requests():
    for line in (top / "tests/golden/requests.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, command = line.split(": ", 1)
        answer = json.loads(run([assay, *shlex.split(command), "--format", "json"]).stdout)
        arguments = {key: value for key, value in answer["inputs"].items() if key != "verb"}
        if "derivation" in answer:
            arguments["explain"] = True
        yield name, json.dumps({"verb": answer["inputs"]["verb"], "arguments": arguments})


def differences(one, other, path=""):
    """Where two answers differ by more than rounding, and the largest relative difference of two numbers."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs = [(one[key], other[key], f"{path}.{key}") for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(one, other))]
    elif type(one) is type(other) is float:
        off = abs(one - other) / max(abs(one), abs(other), 1e-300)
        return ([path] if off > most else []), off
    else:
        return ([] if one == other else [path]), 0.0
    found, largest = [], 0.0
    for pair in pairs:
        more, off = differences(*pair)
        found, largest = found + more, max(largest, off)
    return found, largest


requests = list(golden_requests())
requests += [("fault", text) for text in (
    "nonsense", '{"verb": "tarin"}', '{"verb": "chips", "arguments": {"id": "\\u0000é"}}', "[" * 10000,
    '{"verb": "train", "arguments": {"model": "llama-3-8b", "on": "h100-sxm:1000000000000000000", "batch": 1}}')]
text = "\n".join(request for _, request in requests) + "\n"
native = run([assay, "json"], text).stdout.splitlines()
done = run(["node", str(top / "tests/site_worker.mjs"), str(options.site)], text)
browser = done.stdout.splitlines()
sys.stderr.write(done.stderr)
failed = not len(native) == len(browser) == len(requests)
equal = 0
for (name, request), ours, theirs in zip(requests, native, browser):
    if ours == theirs:
        equal += 1
        continue
    found, largest = differences(json.loads(ours), json.loads(theirs))
    failed |= bool(found)
    print(f"{name}: {len(found)} places differ, numbers by up to {largest:.1e}", *found[:5])
print(f"{equal} of {len(requests)} answers are equal byte by byte")
sys.exit(failed)
