#!/usr/bin/env python3
"""compare_programs.py SHARED [--assay PROGRAM]: `assay profile` of compiled programs against other counts of them.

SHARED holds truth/ (programs that were compiled and measured, with XLA's own cost analysis and memory statistics) and
inputs/hlo/ (programs of public repositories). Collective bytes are counted here a second time, line by line; models are
those that the files are named after. MaxText's files of shardings are laid beside the sharding rules of `assay train`.
Fails where a dimension, a mesh or a count differs by more than 0.1 %, or a sharding differs for no reason listed here.
"""
import argparse
import ast
import gzip
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import xla_bytes
from xla_bytes import size

parser = argparse.ArgumentParser()
parser.add_argument("shared", type=Path)
parser.add_argument("--assay", default=Path(__file__).resolve().parent.parent / "build/release/assay")
options = parser.parse_args()
faults = 0


def answer_of(*words):
    done = subprocess.run([options.assay, *words, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 3):  # a model that does not fit has a program all the same
        sys.exit(f"{words}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)["results"]


def ask(path, *arguments):
    return answer_of("profile", path, *arguments)


def check(label, ours, theirs, tolerance=1e-3):
    global faults
    difference = abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
    wrong = difference > tolerance
    faults += wrong
    print(f"  {label}: {ours:.10g}, expected {theirs:.10g}, {100 * difference:.4f} %{' DIFFERS' if wrong else ''}")


def total(counts):
    return counts["flops"]["value"] + counts["element_wise_flops"]["value"]


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


def compare_bytes(path, answer, stated):
    """XLA's count by its own rules, and why ours differs from it: kernel by kernel, with nothing left over."""
    theirs = xla_bytes.count(gzip.open(path, "rt").read())
    check("bytes by XLA's rules", sum(count for _, count in theirs.values()), stated, 1e-6)
    ours = {row["name"]: row["bytes"]["value"] for row in answer["kernels"]}
    reasons = {"library calls, which XLA counts as -1": lambda opcode: opcode == "custom-call",
               "ends of asynchronous pairs, whose results XLA counts again": lambda opcode: opcode.endswith("-done"),
               "fusions, of which XLA reads whole what a gather takes rows of or a slice takes a part of behind a bitcast":
                   lambda opcode: opcode.startswith("fusion"),
               "tuples and loops' own": lambda opcode: True}
    total = answer["program"]["counted_once"]["bytes"]["value"]
    print(f"  bytes: {total:.10g}, XLA {stated:.10g}")
    left = total - stated
    for reason, belongs in reasons.items():
        names = [name for name, (opcode, _) in theirs.items() if belongs(opcode)]
        difference = sum(ours.get(name, 0) - theirs.pop(name)[1] for name in names)
        left -= difference
        if abs(difference) > 1e-6 * stated:
            print(f"    {difference:+.10g}, {100 * difference / stated:+.3f} %: {reason}")
    check("bytes that no reason explains", left / stated, 0, 1e-4)


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
    compare_bytes(path, answer, row["bytes"])
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
path = traces / "mlp4-grad.h200.hlo.txt.gz"
answer, cost = ask(path), json.loads((traces / "mlp4-grad.cost.json").read_text())
once = answer["program"]["counted_once"]
check("element-wise FLOP", once["element_wise_flops"]["value"], cost["flops"])  # XLA leaves out library calls
check("transcendentals", once["transcendentals"], cost["transcendentals"])
compare_bytes(path, answer, cost["bytes accessed"])
print("jax-llama8b-4l-train")
stated = json.loads((traces / "jax-llama8b-4l-train.json").read_text())
path = traces / "jax-llama8b-4l-train.hlo.txt.gz"
answer = ask(path, "--on", "h200-sxm")
once, memory = answer["program"]["counted_once"], answer["program"]["memory"]
check("element-wise FLOP", once["element_wise_flops"]["value"], stated["cost"]["flops"])
check("transcendentals", once["transcendentals"], stated["cost"]["transcendentals"])
compare_bytes(path, answer, stated["cost"]["bytes accessed"])
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
# MaxText names a set of rules; this is the strategy that says the same, and where ours is otherwise on purpose.
rules = {"default": "--fsdp {data} --ep {expert}", "pure-fsdp": "--fsdp {data} --ep {expert}",
         "pipeline-large-moe": "--fsdp {data} --ep {expert}", "shard-exp-on-fsdp": "--fsdp {data} --ep {data}",
         "cp-as-ep": "--fsdp {data} --cp {context} --ep {both} --ep-over cp",
         "ep-as-cp": "--fsdp {fsdp} --cp {expert} --ep {expert} --ep-over cp", "ep-as-dp": "--dp {expert} --fsdp {fsdp} --ep {expert}"}
names = {"embedding": "embedding", "logits_dense": "W_head", "query": "W_q", "key": "W_k", "value": "W_v", "out": "W_o",
         "wkv_a": "W_kva", "wkv_b": "W_kvb", "gate": "W_router", "wi_0": "W_gate", "wi_1": "W_in", "wo": "W_out"}
named_differences = {
    "vectors": "norms, biases and sinks: replicated or over few devices there, over all data-parallel devices here",
    "router": "the router: over fsdp alone or replicated there, over all data-parallel devices here",
    "kv_b": "the second product of latent attention: over fsdp alone there, over fsdp and experts here",
    "ep-as-dp": "experts over replicas (ep-as-dp): its own axis there; here the ranks of fsdp, so that a replica has all experts"}
activations = {"inputs_q": "Norm", "query": "Q", "key": "K", "value": "V", "attentions/out": "O", "attention_mla/out": "O",
               "gate_logits": "Router"}


def our_tensors(program, mesh):
    """Ways of each dimension of a weight as it is kept, and of each tensor of the forward pass."""
    sizes = {axis: int(n) for axis, n in (part.split("=") for part in mesh.split(",") if part)}

    def ways(dims):
        return [math.prod(sizes[axis] for axis in dim.partition("_")[2].split("+") if axis) for dim in dims.split(", ")]

    weights, forward = {}, {}
    for row in program:
        kept = re.search(r"update\(.*, (\w+)\[([^\]]*)\]\)$", row["text"])
        if kept:
            weights.setdefault((kept[1], kept[2].count(",") + 1), ways(kept[2]))
        if " forward" in row["block"]:
            for name, dims in re.findall(r"(\w+)\[([^\]]*)\]", row["text"].partition(" = ")[0]):
                forward.setdefault(name, ways(dims))
    return weights, forward


def compare_shardings(folder, rule, model, chip):
    global faults
    named = json.load(gzip.open(folder / "named_shardings.json.gz"))
    sizes = next(iter(named.values()))["mesh"]["shape"]
    fsdp, expert, context = (sizes.get(axis, 1) for axis in ("fsdp", "expert", "context"))
    strategy = rules[rule].format(fsdp=fsdp, expert=expert, context=context, data=fsdp * expert, both=context * expert).split()
    answer = answer_of("train", model, "--on", f"{chip}:{math.prod(sizes.values())}", "--batch", "64seq", "--seq", "2048",
                       "--zero", "0", "--list", *strategy)
    weights, forward = our_tensors(answer["program"], answer["strategy"]["mesh"])
    same, different, parameters = [0, 0], {}, 0
    for key, value in named.items():
        if not key.startswith(".params"):
            continue
        words = re.findall(r"\['(\w+)'\]", key)
        shape, spec = value["shape"], [[axes] if isinstance(axes, str) else axes or [] for axes in value["partition_spec"]]
        parameters += math.prod(shape)
        stacked = any("layers" in word for word in words)  # the second dimension counts layers
        theirs = [math.prod(sizes[axis] for axis in axes) for i, axes in enumerate(spec) if not (stacked and i == 1)]
        name = next((names[word] for word in reversed(words) if word in names), "")
        if "scale" in words or "sinks" in words or words[-1].endswith("bias"):
            reason, ours = "vectors", None
        else:
            ours = weights[(name + ("_shared" if "shared_experts" in words else ""), len(theirs))]
            expert_weight = name in ("W_in", "W_gate", "W_out") and len(theirs) == 3
            reason = {"W_router": "router", "W_kvb": "kv_b"}.get(name) or (rule if expert_weight else "")
        if ours == theirs:
            same = [same[0] + 1, same[1] + math.prod(shape)]
        else:
            different.setdefault(reason if reason in named_differences else f"UNEXPECTED {key}: {theirs}, ours {ours}", []).append(math.prod(shape))
    check("parameters", answer_of("models", model)["parameters"]["total"], parameters)
    print(f"  {' '.join(strategy)}: {same[0]} of {same[0] + sum(map(len, different.values()))} weights, "
          f"{100 * same[1] / parameters:.2f} % of the parameters, sharded alike")
    for reason, counts in different.items():
        faults += reason not in named_differences
        print(f"    {len(counts)} otherwise, {100 * sum(counts) / parameters:.2f} %: {named_differences.get(reason, reason)}")
    count = 0
    for row in json.load(gzip.open(folder / "input_shardings.json.gz"))["Activation Sharding Dump"]:
        for key, value in row.items():
            path = key.partition(":")[0]
            ours = next((ours for word, ours in activations.items() if path.endswith(word)), None)
            if path.startswith("attention_op") or not ours:
                continue
            spec = ast.literal_eval(value["PartitionSpec"][1:])  # names, tuples of them and None
            theirs = [math.prod(sizes[axis] for axis in ([axes] if isinstance(axes, str) else axes or ())) for axes in spec]
            count += 1
            if forward[ours] != theirs:
                faults += 1
                print(f"    DIFFERS: {key} {theirs}, ours {forward[ours]}")
    states = [key for key in named if re.match(r"\.opt_state/\[0\]/\.(mu|nu)/", key)]
    apart = [key for key in states if named[key]["partition_spec"] != named[".params/" + key.split("/", 3)[3]]["partition_spec"]]
    faults += len(apart)
    print(f"    {count} activations, and {len(states)} moments that are sharded as their weights{': DIFFERS' if apart else ''}")


print("MaxText's shardings")
models = {"deepseek2-16b": "deepseek-v2-lite", "gpt-oss-20b": "gpt-oss-20b", "qwen3-0.6b": "qwen3-0.6b"}
shardings = sorted((options.shared / "inputs/hlo/maxtext/sharding_info").rglob("named_shardings.json.gz"))
if not shardings:
    sys.exit(f"{options.shared} has no shardings of MaxText")
for path in shardings:
    model, machine, _, rule = path.parent.parts[-4:]
    print(f"{model} {machine} {rule}")
    compare_shardings(path.parent, re.match(r"rule_([a-z-]+?)(?:_|$)", rule)[1], models[model], {"tpu7x": "tpu-v7", "v6e": "tpu-v6e"}[machine.partition("-")[0]])
print("all agree" if not faults else f"{faults} differences")
sys.exit(4 if faults else 0)
