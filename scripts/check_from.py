#!/usr/bin/env python3
"""Reads the launch files of a folder back and compares what was read with what its index says of them.

usage: scripts/check_from.py FOLDER [--binary build/release/assay] [--only TEXT] [--verbose] [--markdown]

FOLDER/index.csv has a line for each file: file, framework, model, chips, dp, fsdp, tp, pp, cp, ep, micro_batch,
global_batch, seq, precision, open, notes. A file is read without help first; what assay asks for by name (chips, model,
batch, variables) is then given: chips from the index, the model, a batch and values of variables for what no file says.
"""
import argparse
import concurrent.futures
import csv
import json
import re
import subprocess
import sys
from pathlib import Path

SERVING = {"vllm", "sglang", "tensorrt-llm", "inferencex", "dynamo", "k8s"}
CHIPS = [("v5p", "tpu-v5p"), ("v6e", "tpu-v6e"), ("tpu7x", "tpu-v7"), ("h200", "h200-sxm"), ("b200", "b200"),
         ("mi300x", "mi300x"), ("maxtext", "tpu-v5p")]
MODELS = [("llama", "llama-3-8b"), ("qwen", "qwen3-235b-a22b"), ("", "deepseek-r1")]
VARIABLES = {"TP": "8", "CONC": "64", "ISL": "1024", "OSL": "1024", "EP_SIZE": "1", "DP_ATTENTION": "false",
             "MAX_MODEL_LEN": "10240", "1": "superoffload", "PORT": "8000", "TOTAL_DEVICES": "64", "TP_SIZE": "8"}
FIELDS = ["model", "chips", "dp", "fsdp", "tp", "pp", "cp", "ep", "micro_batch", "global_batch", "seq", "precision"]


def ask(binary, words):
    done = subprocess.run([binary, *words, "--format", "json"], capture_output=True, text=True, timeout=300)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    error = (done.stderr or done.stdout).strip()
    return answer.get("results", {}).get("from"), answer, error


def number(text):
    """The number at the start of a cell; None where it is open."""
    found = re.fullmatch(r"\s*(\d+)\s*", text or "")
    return int(found.group(1)) if found else None


def plain(text):
    return re.sub(r"[^a-z0-9.]", "", text.lower())


# Names of the index for models that are in the catalogue by another name, or have the shape of another one.
SAME = {"t5-220m": ["t5-base"], "deepseek-v3.1": ["deepseek-v3"], "deepseek-v3-0324": ["deepseek-v3"],
        "deepseek-coder-v2-lite": ["deepseek-v2-lite"], "deepseek-v3-671b": ["deepseek-v3"],
        "llama-4-maverick-17bx128e": ["llama-4-maverick"], "llama-3-8b": ["llama-3-8b", "llama-3.1-8b"]}


def words_of(name):
    return re.findall(r"[a-z]+|v?\d[\d.x]*[bm]?|a\d+b", name.lower())


def same_model(wanted, got):
    """Every word of the id is one of the index: "Llama 3.1 8B" and "llama-3.1-8b"; an FP8 copy is the same model."""
    name = re.split(r",| \(|, with", wanted)[0].lower().replace(" ", "-")
    if name in SAME and any(same in got.lower() for same in SAME[name]):
        return True
    got = got.split("/")[-1]
    return bool(got) and set(words_of(re.sub(r"-(instruct|hf)\b|meta-", "", got.lower()))) <= set(words_of(name))


def compare(row, request, on, partial):
    """Fields of the index, and whether the request has them: True, False, or None where the index leaves them open."""
    chips = number(re.sub(r".*:", "", on)) if ":" in on and "x" not in on.split(":")[1] else None
    value = lambda key: number(request.get(key, ""))
    verdict = dict.fromkeys(FIELDS)
    if row["model"]:
        verdict["model"] = same_model(row["model"], request.get("model", ""))
    if number(row["chips"]) and chips:
        verdict["chips"] = chips == number(row["chips"])
    for key in ("tp", "pp", "cp", "ep", "fsdp", "dp"):
        wanted = number(row[key])
        if wanted is not None and not (partial and key not in request):
            verdict[key] = (value(key) or 1) == wanted
    if "two devices per chip" in row["notes"]:  # which the index counts
        for key in ("tp", "ep"):
            verdict[key] = verdict[key] or value(key) == number(row[key]) // 2
    attention = "attention data parallel" in row["notes"]
    if attention and verdict["tp"] is False:  # attention groups are replicas inside the tensor-parallel group
        verdict["tp"] = (value("tp") or 1) * (value("dp") or 1) == number(row["tp"])
    serving = row["framework"] in SERVING
    if number(row["micro_batch"]):
        engines = (value("dp") or 1) if serving else 1
        got = value("batch") if serving else value("micro-batch")
        devices = 2 if "two JAX devices" in row["notes"] else 1  # of a chip, which the index counts
        wanted = number(row["micro_batch"])
        if not (partial and got is None):
            verdict["micro_batch"] = got in (wanted, wanted * engines, wanted * devices)
    if not serving and number(row["global_batch"]):
        verdict["global_batch"] = request.get("batch") == f"{number(row['global_batch'])}seq"
    if not serving and number(row["seq"]):
        verdict["seq"] = value("seq") == number(row["seq"])
    text = row["precision"].lower()
    if not serving and "compute" in request:
        wanted = "fp8" if "fp8" in text or "float8" in text else "fp16" if "fp16" in text else "bf16"
        verdict["precision"] = request["compute"] == wanted
    if serving and "kv fp8" in text:
        verdict["precision"] = request.get("kv") == "fp8"
    return verdict


def read(binary, folder, row):
    serving = row["framework"] in SERVING
    verb = "serve" if serving else "train"
    path = str(folder / row["file"])
    words = [verb, "--from", path]
    name = row["file"].lower()
    asked, error, found = [], "", None
    for _ in range(5):
        found, answer, error = ask(binary, words)
        if found is not None:
            break
        text = " ".join(error.split())
        more = []
        if "on which chips" in text and "--on" not in words:
            chip = next((c for key, c in CHIPS if key in name or key == row["framework"]), "h100-sxm")
            more += ["--on", chip]
            asked.append("chips")
        if "how many chips" in text:
            at = words.index("--on") + 1 if "--on" in words else None
            if at:
                words[at] = f"{words[at].split(':')[0]}:{number(row['chips']) or 64}"
                asked.append("chips")
        if "which model" in text:
            words.insert(1, next(m for key, m in MODELS if key in row["model"].lower()))
            asked.append("model")
        if "how many sequences" in text:
            more += ["--batch", f"{number(row['global_batch']) or 64}seq"]
            asked.append("batch")
        names = re.findall(r"\$\{?(\w+)", text) + re.findall(r"--var (?!NAME)(\w+)=", text) if "the value of" in text else []
        if "the value of" in text and "asks for" in text:
            names += [n for n in re.findall(r"\w+", text.split("asks for")[1]) if n in VARIABLES]
        for one in names:
            if f"{one}=" not in " ".join(words):
                more += ["--var", f"{one}={VARIABLES.get(one, '8')}"]
                asked.append(one)
        if re.search("contradicts|cannot be split|not a whole number", text) and "--on" in words and not asked.count("more chips"):
            at = words.index("--on") + 1
            words[at] = f"{words[at].split(':')[0]}:{number(row['chips']) or 256}"
            asked.append("more chips")
            continue
        if not more and "which model" not in text and "how many chips" not in text:
            break
        words += more
    if found is None:
        return row, "not read", asked, {}, " ".join(error.split())[:220], {}
    request = dict(found["request"])
    for key, value in zip(words, words[1:]):
        if key in ("--on", "--batch"):
            request.setdefault(key[2:], value)
    partial = any("cannot be read" in note for note in answer.get("notes", []))
    verdict = compare(row, request, request.get("on", ""), partial)
    if "model" in asked:
        verdict["model"] = None
    if "batch" in asked:
        verdict["global_batch"] = None
    if "chips" in asked or "more chips" in asked:
        verdict["chips"] = None
    wrong = [key for key in FIELDS if verdict[key] is False]
    return row, "differs" if wrong else "read", asked, verdict, "; ".join(wrong), request


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--binary", default="build/release/assay")
    arguments.add_argument("--only", default="", help="files whose name has this text")
    arguments.add_argument("--verbose", action="store_true", help="with the request that each file means")
    arguments.add_argument("--markdown", action="store_true", help="the table by framework alone")
    given = arguments.parse_args()
    rows = [r for r in csv.DictReader(open(given.folder / "index.csv")) if given.only in r["file"]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda row: read(given.binary, given.folder, row), rows))
    totals = {}
    for row, state, asked, verdict, why, request in results:
        counts = totals.setdefault(row["framework"], [0, 0, 0, 0])
        counts[0] += 1
        counts[1] += state != "not read"
        counts[2] += state == "read"
        counts[3] += state == "read" and not asked
        if given.markdown:
            continue
        fields = " ".join(f"{key}{'=' if ok else '!'}" for key, ok in verdict.items() if ok is not None)
        print(f"{state:9} {row['file']:64} asked: {', '.join(asked) or '-'}  {fields}  {why}")
        if given.verbose and request:
            print("          ", " ".join(f"{k}={v}" for k, v in request.items()))
    print("| framework | files | read | with the plan of the index | without any question |\n| --- | --- | --- | --- | --- |")
    for name, counts in totals.items():
        print(f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} | {counts[3]} |")
    sums = [sum(c[i] for c in totals.values()) for i in range(4)]
    print(f"| all | {sums[0]} | {sums[1]} | {sums[2]} | {sums[3]} |")
    return 0 if sums[2] >= 0.9 * sums[0] else 1


if __name__ == "__main__":
    sys.exit(main())
