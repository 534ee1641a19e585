#!/usr/bin/env python3
"""options.py [--assay PATH] [--only OPTION...]: asks each request of options.txt with and without each option below it.
An option that changes the results changes the screen, too; an example that changes nothing, and an option of train or
serve without an example, are faults."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def examples():
    """Pairs of requests, with the option that they differ in."""
    base = None
    for line in open(f"{TOP}/tests/options.txt", encoding="utf-8"):
        words = shlex.split(line, comments=True)
        if not line.startswith("  "):
            base = words or base
            continue
        at = words.index("instead") if "instead" in words else len(words)
        given, instead = words[:at], words[at + 2:]
        rest = list(base)
        for i in range(len(base)):
            if instead and base[i:i + len(instead)] == instead:
                del rest[i:i + len(instead)]
        yield given[0][2:].split("=")[0], rest + instead, rest + given


def answer(assay, words, *form):
    done = subprocess.run([assay, *words, *form], capture_output=True, text=True, cwd=TOP)
    if done.returncode not in (0, 3):
        raise ValueError(f"is refused: {(done.stderr or done.stdout).strip()[:200]}")
    return done.stdout


def said(value):
    """Results without what repeats the request or says how much was searched."""
    if isinstance(value, list):
        return [said(one) for one in value]
    if isinstance(value, dict):
        return {key: said(one) for key, one in value.items() if key not in ("arguments", "search")}
    return value


def results(assay, words):
    if "--format" in words or "--emit" in words:
        return answer(assay, words)
    return said(json.loads(answer(assay, words, "--format", "json"))["results"])


def fault(assay, without, given):
    """What is wrong with an option; nothing if all is well."""
    try:
        new, screen = results(assay, given), answer(assay, given)
    except ValueError as error:
        return str(error)
    with contextlib.suppress(ValueError):  # what is refused without the option is changed by it
        if results(assay, without) == new:
            return "changes nothing; give it another example"
        if answer(assay, without) == screen:
            return "changes the results, and the screen does not say so"


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--assay", default=f"{TOP}/build/release/assay")
    options.add_argument("--only", nargs="*")
    asked = options.parse_args()
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        del os.environ[name]
    faults, seen = [], set()
    cases = [(request[0], option, without, request) for option, without, request in examples()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda case: None if asked.only and case[1] not in asked.only
                         else fault(asked.assay, case[2], case[3]), cases)
        for (verb, option, _, request), wrong in zip(cases, found):
            seen.add((verb, option))
            if wrong:
                faults.append(f"{shlex.join(request)}: --{option} {wrong}")
    for verb in ("train", "serve"):
        schema = json.loads(answer(asked.assay, ["schema", verb]))["$defs"]
        known = set(schema[f"{verb}.request"]["properties"]["arguments"]["properties"])
        for option in sorted(known - {"model", "explain", "config", "catalogue", "without-fold"}):
            if (verb, option) not in seen:
                faults.append(f"{verb}: --{option} has no example in options.txt")
    print("\n".join(faults + [f"{len(cases)} examples, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
