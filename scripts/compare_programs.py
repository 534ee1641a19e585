#!/usr/bin/env python3
"""compare_programs.py SHARED [--assay PROGRAM]: `assay profile` of compiled programs against other counts of them.

SHARED holds truth/ (programs that were compiled and measured, with XLA's own cost analysis and memory statistics) and
inputs/hlo/ (programs of public repositories). Collective bytes are counted here a second time, line by line; models are
those that the files are named after. Fails where a dimension, a mesh or a count differs by more than 0.1 %.
"""
import argparse
import gzip
import json
import math
import re
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("shared", type=Path)
parser.add_argument("--assay", default=Path(__file__).resolve().parent.parent / "build/release/assay")
options = parser.parse_args()
faults = 0


def ask(path, *arguments):
    done = subprocess.run([options.assay, "profile", path, *arguments, "--format", "json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)["results"]


def check(label, ours, theirs, tolerance=1e-3, note=""):
    global faults
    difference = abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
    wrong = difference > tolerance
    faults += wrong and not note
    print(f"  {label}: {ours:.10g}, expected {theirs:.10g}, {100 * difference:.4f} %{' DIFFERS' if wrong and not note else ''}{'; ' + note if wrong and note else ''}")


def total(counts):
    return counts["flops"]["value"] + counts["element_wise_flops"]["value"]


bits = {"pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "bf16": 16, "f16": 16,
        "f32": 32, "s64": 64, "u64": 64, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8}


def size(shape):
    return sum(math.prod(int(d) for d in dims.split(",") if d) * bits[kind] / 8
               for kind, dims in re.findall(r"\b([a-z]+[0-9a-z]*)\[([0-9,]*)\]", shape) if kind in bits)


def group_size(text, devices):
    iota = re.match(r"\[(\d+),(\d+)\]", text)
    if iota:
        return int(iota[2])
    named = re.match(r"mesh\[([^\]]*)\] \{([^}]*)\}", text)
    if named:
        sizes = dict(re.findall(r"'([^']*)'=(\d+)", named[1]))
        return math.prod(int(sizes[axis]) for axis in re.findall(r"'([^']*)'", named[2]))
    first = re.match(r"\{\{([0-9,]+)\}", text)
    return first[1].count(",") + 1 if first else devices


def collectives(text, trips, devices):
    """Bytes that devices hold before each kind of collective, from the results that the lines state."""
    out, factor = {}, 1
    for line in text.splitlines():
        head = re.match(r"(?:ENTRY )?%?(\S+) .*\{$", line)
        if head and not line.startswith(" "):
            factor = trips.get(head[1].lstrip("%"), 1)
        found = re.match(r"\s+(?:ROOT )?%?\S+ = (.*?) (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)\((.*)", line)
        if not found:
            continue
        groups = re.search(r"replica_groups=(mesh\[[^\]]*\] \{[^}]*\}|\{\{[^}]*\}[^ ]*\}|[^ ]*)", found[3])
        n = group_size(groups[1], devices) if groups else devices
        kind, held = found[2], size(found[1])
        held = held / n if kind == "all-gather" else held * n if kind == "reduce-scatter" else held
        kind = "permute" if kind == "collective-permute" else kind
        out[kind] = out.get(kind, 0) + factor * held
    return out


def compare_collectives(path, answer):
    text = gzip.open(path, "rt").read()
    program = answer["program"]
    theirs = collectives(text, {loop["body"]: loop["trips"] for loop in program["loops"]}, program["devices"])
    ours = {}
    for row in program["collectives"]:
        ours[row["kind"]] = ours.get(row["kind"], 0) + row["operand"]["value"]
    for kind in sorted(theirs | ours):
        check(f"{kind} bytes", ours.get(kind, 0), theirs.get(kind, 0))


print("XLA's own counts (loops once)")
for line in open(options.shared / "truth/xla_train.jsonl"):
    row = json.loads(line)
    path = options.shared / f"truth/hlo/train_{row['name']}.hlo.txt.gz"
    if not path.exists():
        continue
    print(path.name)
    answer = ask(path)
    once, memory, model = answer["program"]["counted_once"], answer["program"]["memory"], answer["model"]
    check("FLOP", total(once), row["flops"])
    check("bytes", once["bytes"]["value"], row["bytes"], 5e-3)
    check("arguments", memory["arguments"]["value"], row["args"])
    check("temporaries", memory["temporaries"]["value"], row["temp"], 2e-2)
    dims = row["model"]
    for key, name in (("D", "hidden"), ("F", "feed_forward"), ("N", "heads"), ("K", "kv_heads"), ("H", "head_dim"),
                      ("L", "layers"), ("V", "vocabulary"), ("S", "sequence")):
        check(name, model[name], dims[key])
    check("batch", model["batch"], row["batch"])
    check("devices of the mesh", math.prod(axis["size"] for axis in answer["mesh"]), math.prod(row["mesh"].values()))
    compare_collectives(path, answer)

traces = options.shared / "truth/traces"
print("mlp4-grad")
answer, cost = ask(traces / "mlp4-grad.h200.hlo.txt.gz"), json.loads((traces / "mlp4-grad.cost.json").read_text())
once = answer["program"]["counted_once"]
check("element-wise FLOP", once["element_wise_flops"]["value"], cost["flops"])  # XLA leaves out library calls
check("transcendentals", once["transcendentals"], cost["transcendentals"])
check("bytes", once["bytes"]["value"], cost["bytes accessed"], 1e-2, "XLA weighs the operands of fusions on GPUs otherwise")
print("jax-llama8b-4l-train")
stated = json.loads((traces / "jax-llama8b-4l-train.json").read_text())
answer = ask(traces / "jax-llama8b-4l-train.hlo.txt.gz", "--on", "h200-sxm")
once, memory = answer["program"]["counted_once"], answer["program"]["memory"]
check("element-wise FLOP", once["element_wise_flops"]["value"], stated["cost"]["flops"])
check("transcendentals", once["transcendentals"], stated["cost"]["transcendentals"])
check("bytes", once["bytes"]["value"], stated["cost"]["bytes accessed"], 1e-2, "the same")
check("arguments", memory["arguments"]["value"], stated["memory"]["argument_size_in_bytes"])
check("temporaries", memory["temporaries"]["value"], stated["memory"]["temp_size_in_bytes"])
check("peak memory", memory["peak"]["value"], stated["memory"]["peak_memory_in_bytes"])
check("estimate of a step", answer["program"]["estimate"]["value"], stated["step_s"], 0.1)
for key, name in (("d_model", "hidden"), ("d_ff", "feed_forward"), ("heads", "heads"), ("kv_heads", "kv_heads"),
                  ("head_dim", "head_dim"), ("layers", "layers"), ("vocab", "vocabulary"), ("batch", "batch"), ("seq", "sequence")):
    check(name, answer["model"][name], stated["dims"][key])
stable = ask(traces / "jax-llama8b-4l-train.stablehlo.txt.gz")
check("FLOP of the StableHLO text", stable["program"]["flops"]["value"], answer["program"]["flops"]["value"])
check("parameters of the StableHLO text", stable["model"]["parameters"], answer["model"]["parameters"])

llama8 = dict(hidden=4096, feed_forward=14336, heads=32, kv_heads=8, head_dim=128, layers=32, vocabulary=128256, parameters=8030261248)
llama70 = dict(hidden=8192, feed_forward=28672, heads=64, kv_heads=8, head_dim=128, layers=80, vocabulary=128256, parameters=70553706496)
mixtral = dict(hidden=4096, expert_feed_forward=14336, experts=8, experts_per_token=2, heads=32, kv_heads=8, head_dim=128, layers=32,
               vocabulary=32000, parameters=46702792704)
# Both of MaxText's have four layers of the model, and end before their entry computation.
maxtext8 = llama8 | dict(layers=4, parameters=2 * 128256 * 4096 + 4 * 218112000 + 4096)
qwen = dict(hidden=2048, feed_forward=6144, heads=16, kv_heads=8, head_dim=128, layers=4, vocabulary=151936,
            parameters=151936 * 2048 + 4 * (3 * 2048 * 6144 + 2 * 2048 * 2048 + 2 * 2048 * 1024 + 2 * 2048 + 2 * 128) + 2048)
small = dict(hidden=2560, feed_forward=8192, heads=8, kv_heads=8, head_dim=128, layers=8, vocabulary=32000,
             parameters=32000 * 2560 + 8 * (3 * 2560 * 8192 + 4 * 2560 * 1024 + 2560) + 2560)
deepseek = dict(hidden=7168, feed_forward=18432, experts=64, expert_feed_forward=2048, heads=128, layers=3, vocabulary=129280)
programs = {"xla/hlo_llama31_8b_bf16_1x8.hlo.gz": (llama8, 8), "xla/hlo_llama31_8b_bf16_2x8.hlo.gz": (llama8, 16),
            "xla/hlo_llama31_70b_bf16_16x8.hlo.gz": (llama70, 128), "xla/hlo_llama31_70b_bf16_32x8.hlo.gz": (llama70, 256),
            "xla/hlo_llama31_70b_fp8_32x8.hlo.gz": (llama70, 256), "xla/hlo_llama3_8b_cp_bf16_1x4.hlo.gz": (llama8, 4),
            "xla/hlo_llama3_8b_bf16_activation_offloading_1x8.hlo.gz": (llama8, 8),
            "xla/hlo_mixtral_8x7b_bf16_1x8.hlo.gz": (mixtral, 8), "xla/nv_maxtext_1n1g_jit_train_step_before_optimization.hlo.gz": (small, 8),
            "xla/nv_maxtext_deepseek_1n4g_jit_train_step_before_optimization.hlo.gz": (deepseek, 4), "maxtext/reference_hlo_llama3_8b.txt.gz": (maxtext8, 4),
            "maxtext/reference_hlo_qwen3_1.7b.txt.gz": (qwen, 4)}
print("Programs of public repositories")
for name, (model, devices) in programs.items():
    path = options.shared / "inputs/hlo" / name
    print(name)
    answer = ask(path)
    for key, value in model.items():
        check(key, answer["model"].get(key, 0), value)
    check("devices of the mesh", math.prod(axis["size"] for axis in answer["mesh"]), devices)
    if answer["program"]["complete"]:
        compare_collectives(path, answer)
print("all agree" if not faults else f"{faults} differences")
sys.exit(4 if faults else 0)
