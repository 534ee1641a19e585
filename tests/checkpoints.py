#!/usr/bin/env python3
"""checkpoints.py [--path DIR]: `assay run serve DIR` on tiny published checkpoints against what the transformers library
computes greedily (tests/data/checkpoints, written by scripts/gpu/checkpoints.py), and what is refused."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

top = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("--path", default=top / "build/release", type=lambda text: pathlib.Path(text).resolve())
options = parser.parse_args()
environment = {key: value for key, value in os.environ.items() if not key.startswith("ASSAY_")}
faults = []


def run(*words):
    return subprocess.run([options.path / "assay", "run", *map(str, words)], capture_output=True, text=True, cwd=top,
                          env=environment)


def served(folder, *words):
    done = run("serve", folder, *words, "--logits", "--format", "json")
    if done.returncode:
        raise ValueError((done.stderr or done.stdout).strip()[:300])
    return json.loads(done.stdout)["results"]


def compare(folder, *words):
    """Tokens are those of the library; logits differ by its own rounding of positions and norms in fp32."""
    expected = json.loads((folder / "expected.json").read_text())
    prompt = ",".join(map(str, expected["prompt"]))
    try:
        row = served(folder, "--tokens", prompt, "--new-tokens", len(expected["tokens"]), *words)["requests"][0]
        apart = max(abs(a - b) for ours, theirs in zip(row["logits"], expected["logits"]) for a, b in zip(ours, theirs))
        if row["read"] != expected["prompt"] or row["written"] != expected["tokens"]:
            return f"{folder.name} {words}: writes {row['written']}, the library {expected['tokens']}"
        if not apart < 2e-5 or len(row["logits"]) != len(expected["logits"]):
            return f"{folder.name} {words}: logits differ by {apart}"
    except ValueError as error:
        return f"{folder.name} {words}: {error}"
    return None


def refuse(name, change, said, *words):
    """A copy of a checkpoint, changed, is an error that says why."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "model"
        shutil.copytree(top / "tests/data/checkpoints" / name, folder)
        change(folder)
        done = run("serve", folder, *(words or ("--tokens", "1,2")))
        if done.returncode != 1 or said not in " ".join(done.stderr.split()):
            faults.append(f"{name}: expected an error with {said!r}, got {done.returncode}: {done.stderr.strip()[:300]}")


def configured(**values):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        config.update(values)
        (folder / "config.json").write_text(json.dumps(config))
    return change


def rewritten(edit):
    """The header of the one file of a checkpoint, edited."""
    def change(folder):
        file = folder / "model.safetensors"
        data = file.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        edit(header)
        text = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])
    return change


def cut(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


folders = sorted(path for path in (top / "tests/data/checkpoints").iterdir())
ways = [(), ("--tp", "2"), ("--dp", "2", "--tp", "2", "--cache", "batch"), ("--no-cache",)]
jobs = [(folder, *way) for folder in folders for way in ways]
jobs += [(folder, "--speculate", "2") for folder in folders if folder.name in ("llama31", "gemma2", "gpt2")]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    faults += [fault for fault in pool.map(lambda job: compare(*job), jobs) if fault]

name = "qwen3"
refuse("llama31", configured(model_type="aquila", architectures=["AquilaForCausalLM"]), "published weights of \"aquila\"")
refuse(name, configured(hidden_act="xielu"), "the activation \"xielu\" is not computed")
refuse(name, configured(rope_parameters={"rope_type": "mrope", "rope_theta": 1e4}), "of type \"mrope\" are not computed")
refuse(name, configured(quantization_config={"quant_method": "gptq", "bits": 4}), "packed weights are not run")
refuse(name, cut, "is it complete?")
refuse(name, rewritten(lambda header: header.pop("model.layers.1.mlp.up_proj.weight")), "no tensor \"model.layers.1.mlp.up_proj.weight\"")
refuse(name, rewritten(lambda header: header.update({"model.layers.1.mlp.up_proj.bias": header["model.norm.weight"]})),
       "share the bytes")
refuse(name, lambda folder: None, "is not one of the model's 64 tokens", "--tokens", "64")
refuse(name, lambda folder: None, "has no tokenizer.json", "--prompt", "Hello")
refuse("phi3_long", lambda folder: None, "are more than 64", "--tokens", "1,2", "--new-tokens", "70")
unigram = json.dumps({"model": {"type": "Unigram", "vocab": []}})
refuse(name, lambda folder: (folder / "tokenizer.json").write_text(unigram), "only BPE", "--prompt", "Hello")

# An answer ends with the token that ends it.
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch) / "model"
    shutil.copytree(top / "tests/data/checkpoints/llama31", folder)
    expected = json.loads((folder / "expected.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [expected["tokens"][2]]}))
    row = served(folder, "--tokens", ",".join(map(str, expected["prompt"])), "--new-tokens", 6)["requests"][0]
    last = expected["tokens"].index(expected["tokens"][2]) + 1
    if row["written"] != expected["tokens"][:last] or len(row["logits"]) != last:
        faults.append(f"an answer goes on after its end: {row['written']}")

for fault in faults:
    print(fault)
print(f"{len(jobs)} runs of {len(folders)} checkpoints, {len(faults)} faults")
sys.exit(1 if faults else 0)
