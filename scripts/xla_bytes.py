"""The bytes that XLA's cost analysis (HloCostAnalysis) counts for a program, from its text.

Its rules, as far as compiled programs use them: an operation reads its operands and writes its result; a fusion reads its
parameters, of one that a slice takes directly only the slice, and counts each broadcast of a parameter again; an update in
place writes the update; a library call counts as -1; the end of an asynchronous pair counts its result once more; loops
count once.
"""
import math
import re

bits = {"pred": 8, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32, "bf16": 16, "f16": 16,
        "f32": 32, "s64": 64, "u64": 64, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8}


def size(shape):
    return sum(math.prod(int(d) for d in dims.split(",") if d) * bits[kind] / 8
               for kind, dims in re.findall(r"\b([a-z]+[0-9a-z]*)\[([0-9,]*)\]", shape) if kind in bits)


def leading_shape(text):
    """A shape and what follows it; tuples nest."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == " " and depth == 0:
            return text[:i], text[i + 1:]
    return text, ""


def read_computations(text):
    out, current, entry = {}, None, None
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        head = re.match(r"(ENTRY )?%?(\S+) .*\{$", line)
        if head and not line.startswith(" "):
            current = out.setdefault(head[2], {})
            entry = head[2] if head[1] else entry
            continue
        found = re.match(r"\s+(ROOT )?%?(\S+) = (.*)", line)
        if not found or current is None:
            continue
        shape, rest = leading_shape(found[3])
        opcode, _, operands = rest.partition("(")
        called = {key: name for key, name in re.findall(r"\b(calls|body|condition|to_apply)=%?([\w.-]+)", rest)}
        current[found[2]] = {"root": bool(found[1]), "shape": shape, "opcode": opcode, "called": called,
                             "operands": re.findall(r"%([\w.-]+)", operands.partition("), ")[0])}
    return out, entry


def parameter_bytes(name, body):
    whole, out, shared = size(body[name]["shape"]), 0, False
    for user in body.values():
        if name not in user["operands"]:
            continue
        first = user["operands"][0] == name
        if user["opcode"] == "slice" or (user["opcode"] == "dynamic-slice" and first):
            out += size(user["shape"])
        elif user["opcode"] in ("broadcast", "reshape"):
            out += whole
        elif not (user["opcode"] == "dynamic-update-slice" and first) and not shared:
            shared, out = True, out + whole
    return out


def fusion_bytes(body):
    root = next(one for one in body.values() if one["root"])
    results = [body[name] for name in root["operands"]] if root["opcode"] == "tuple" else [root]
    written = sum(size(body[one["operands"][1]]["shape"] if one["opcode"] == "dynamic-update-slice" else one["shape"])
                  for one in results)
    return written + sum(parameter_bytes(name, body) for name, one in body.items() if one["opcode"] == "parameter")


def instruction_bytes(one, body, computations):
    opcode, called = one["opcode"], one["called"]
    if opcode in ("parameter", "constant", "get-tuple-element", "bitcast", "while"):
        return 0
    if opcode == "tuple":
        return 8 * len(one["operands"])  # pointers
    if opcode == "custom-call":
        return -1
    if opcode in ("fusion", "fusion-start"):
        return fusion_bytes(computations[called["calls"]])
    if opcode.endswith("-done"):
        return size(one["shape"])
    if opcode in ("slice", "dynamic-slice"):
        return 2 * size(one["shape"])
    return size(one["shape"]) + sum(size(body[name]["shape"]) for name in one["operands"] if name in body)


def count(text):
    """By instruction: its opcode and its bytes."""
    computations, entry = read_computations(text)
    out, open_ = {}, [entry]
    while open_:
        body = computations[open_.pop()]
        for name, one in body.items():
            out[name] = (one["opcode"], instruction_bytes(one, body, computations))
            if one["opcode"] == "while":
                open_ += [one["called"]["body"], one["called"]["condition"]]
    return out
