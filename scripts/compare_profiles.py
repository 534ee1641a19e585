#!/usr/bin/env python3
"""compare_profiles.py FOLDER [--assay PROGRAM]: `assay profile` against reports of TraceLens and definitions of HTA.

FOLDER holds tracelens/ (tests/traces of AMD-AGI/TraceLens: traces with the reports it made of them) and hta/
(tests/data of facebookresearch/HolisticTraceAnalysis). Prints each figure's difference; fails if a time differs by more
than 0.1 % or a FLOP count at all. HTA's definitions are computed here from the raw events, in exact arithmetic.
"""
import argparse
import csv
import gzip
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

csv.field_size_limit(10**9)
parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--assay", default=Path(__file__).resolve().parent.parent / "build/release/assay")
options = parser.parse_args()
faults = 0


def ask(*arguments):
    done = subprocess.run([options.assay, "profile", *arguments, "--format", "json"], capture_output=True, text=True)
    return json.loads(done.stdout)["results"] if done.returncode == 0 else (done.stdout + done.stderr).strip()


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def trace_of(report):
    """The trace beside a folder of reports."""
    if report.name == "perf_csvs":
        return next(path for path in report.parent.glob("*.json.gz"))
    name = re.sub(r"(_recompute)?_perf_report_csvs$", "", report.name)
    return report.parent / f"{name}.json.gz"


times = {"computation_time": "computation_time", "exposed_comm_time": "exposed_communication_time",
         "exposed_memcpy_time": "exposed_copy_time", "busy_time": "busy_time", "idle_time": "idle_time",
         "total_time": "total_time", "total_comm_time": "communication_time", "total_memcpy_time": "copy_time"}


def compare_times(label, reported, answered):
    global faults
    worst = 0.0
    for row in reported:
        theirs, ours = float(row["time ms"]) * 1e-3, answered[times[row["type"]]]["value"]
        difference = abs(ours - theirs) / theirs if theirs else abs(ours)
        worst = max(worst, difference)
        if difference > 1e-3:
            faults += 1
            print(f"  {label}: {row['type']} {ours * 1e3:.6f} ms, TraceLens {theirs * 1e3:.6f} ms")
    print(f"  {label}: {len(reported)} times, largest difference {100 * worst:.5f} %")


def compare_work(label, sheet, answered):
    global faults
    ours = {}
    for row in answered["operations"]:
        if "operation" in row and "flops" in row:
            key = (row["operation"], row.get("shapes", ""))
            calls, flops, size = ours.get(key, (0, 0, 0))
            ours[key] = (calls + row["calls"], row["flops"]["value"], row.get("bytes", {}).get("value", 0))
    same = equal_bytes = missing = 0
    for row in rows(sheet):
        dims = json.loads(row["Input Dims_first"].replace("(", "[").replace(")", "]"))
        shapes = " ".join("[" + ",".join(map(str, d)) + "]" for d in dims if d and not isinstance(d[0], list))
        mine = ours.get((row["name"], shapes))
        if mine is None:
            # An operation around another one that has the same work, or one whose launch is not in the file.
            missing += 1
            continue
        theirs, moved = float(row["GFLOPS_first"]) * 1e9, row["Data Moved (MB)_first"]
        if abs(mine[1] - theirs) > 1e-9 * theirs:
            faults += not sheet.stem.startswith("CONV")  # TraceLens leaves out the additions of a bias there
            print(f"  {label}: {row['name']} {shapes}: {mine[1]:.6g} FLOP, TraceLens {theirs:.6g}")
        else:
            same += 1
        if moved and abs(mine[2] - float(moved) * 2**20) <= 1e-6 * mine[2]:
            equal_bytes += 1
    print(f"  {label}: {same} operations with equal FLOP, {equal_bytes} of them with equal bytes; {missing} around or without those of the trace")


def files(pattern):
    found = sorted(options.folder.glob(pattern))
    if not found:
        sys.exit(f"{options.folder} has no {pattern}")
    return found


print("TraceLens")
for timeline in files("tracelens/**/gpu_timeline.csv"):
    report = timeline.parent
    trace = trace_of(report)
    captures = [word for path in sorted(trace.parent.glob("capture_traces/*.json.gz")) for word in ("--capture", path)]
    answer = ask(trace, *captures)
    print(trace.relative_to(options.folder))
    if isinstance(answer, str):
        faults += 1
        print(f"  {answer}")
        continue
    reported = rows(timeline)
    answer |= answer.get("linked", {})  # TraceLens counts only events to which an arrow leads from their launch
    if "is_recompute" in reported[0]:
        for flag, part in (("True", "alone"), ("False", "without")):
            compare_times(f"recomputation {part}", [r for r in reported if r["is_recompute"] == flag],
                          answer["recomputation"][part])
    else:
        compare_times("times", reported, answer)
    for sheet in sorted(report.glob("*.csv")):
        if sheet.stem in ("GEMM", "SDPA_fwd", "SDPA_bwd", "CONV_fwd", "CONV_bwd"):
            compare_work(sheet.stem, sheet, answer)


def union(intervals):
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def covered(intervals):
    return sum((end - begin for begin, end in intervals), Fraction(0))


def overlap(a, b):
    return covered(a) + covered(b) - covered(union(a + b))


def hta(events):
    """Temporal breakdown, overlap of communication, and idle time of streams, as HTA defines them."""
    kernels, launches = [], {}
    for event in events:
        if event.get("ph") != "X" or "args" not in event or "ts" not in event:
            continue
        category = event.get("cat", "")
        if category.lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            kernels.append(event)
        elif "correlation" in event["args"]:
            launches.setdefault(event["args"]["correlation"], Fraction(event["ts"]))
    if not kernels:
        return None
    spans = [(Fraction(k["ts"]), Fraction(k["ts"]) + Fraction(k.get("dur", 0)), k) for k in kernels]
    comm = re.compile(r"(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)")
    memory = re.compile(r"(^(hip)?Memcpy)|(^(hip)?Memset)|(^dma)")
    not_compute = re.compile(r"(^nccl)|(.*Memcpy)|(.*Memset)|(.*dma)|(^.*Sync)|(^Stream Wait Event)|(^hip)|(^hccl)")
    kind = lambda n: "comm" if comm.match(n) else "memory" if memory.match(n) else "other" if not_compute.match(n) else "compute"
    busy = union([[b, e] for b, e, _ in spans])
    computing = union([[b, e] for b, e, k in spans if kind(k["name"]) == "compute"])
    communicating = union([[b, e] for b, e, k in spans if kind(k["name"]) == "comm"])
    total = busy[-1][1] - busy[0][0]
    streams = {}
    for begin, end, kernel in sorted(spans, key=lambda s: s[0]):
        sums = streams.setdefault(str(kernel["args"].get("stream", kernel["tid"])), {"host_wait": Fraction(0), "kernel_wait": Fraction(0), "other_wait": Fraction(0), "end": None})
        if sums["end"] is not None:
            gap, launch = begin - sums["end"], launches.get(kernel["args"].get("correlation"))
            which = "host_wait" if launch is not None and launch > sums["end"] else "kernel_wait" if gap * 1000 < 30 else "other_wait"
            sums[which] += gap
        sums["end"] = end
    return {"idle_time": total - covered(busy), "computation_without_fills": covered(computing), "total_time": total,
            "hidden": overlap(computing, communicating) / covered(communicating) if communicating else None, "streams": streams}


print("HTA")
for trace in files("hta/**/*.json.gz"):
    document = json.loads(gzip.open(trace).read(), parse_float=Fraction, parse_int=Fraction)
    events = document.get("traceEvents", []) if isinstance(document, dict) else document
    events = [e for e in events if isinstance(e, dict)]
    answer = ask(trace)
    expected = hta(events) if events else None
    print(trace.relative_to(options.folder))
    if expected is None or isinstance(answer, str):
        print(f"  {'no work of a device, refused' if expected is None and isinstance(answer, str) else 'FAILS'}")
        faults += expected is not None or not isinstance(answer, str)
        continue
    worst = 0.0
    def check(name, ours, theirs, scale=1e-6):
        global faults, worst
        theirs = float(theirs) * scale
        difference = abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
        worst = max(worst, difference)
        if difference > 1e-9:
            faults += 1
            print(f"  {name}: {ours}, HTA {theirs}")
    for name in ("idle_time", "computation_without_fills", "total_time"):
        check(name, answer[name]["value"], expected[name])
    if expected["hidden"] is not None:
        check("overlap", answer["overlap_without_fills"], expected["hidden"], 1.0)
    for row in answer["streams"]:
        for name in ("host_wait", "kernel_wait", "other_wait"):
            check(f"stream {row['stream']} {name}", row[name]["value"], expected["streams"][row["stream"].split(chr(31))[0]][name])
    print(f"  temporal breakdown, overlap and {len(answer['streams'])} streams; largest difference {100 * worst:.7f} %")
print("all agree" if not faults else f"{faults} differences")
sys.exit(4 if faults else 0)
