#!/usr/bin/python3
"""python.py: how long the Python module takes to import, and how many requests it answers in a second. The release build's
module is taken unless PYTHONPATH has another."""
import subprocess
import sys
import time
from pathlib import Path

path = Path(__file__).resolve().parent.parent / "build/release/python"


def seconds_of(code):
    return min(run(code) for _ in range(10))


def run(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import sys; sys.path.append({str(path)!r}); {code}"], check=True)
    return time.perf_counter() - start


sys.path.append(str(path))
print(f"import            {1e3 * (seconds_of('import assay') - seconds_of('import sys')):8.1f} ms")

import assay  # noqa: E402

for name, call in {
    "roofline": lambda: assay.roofline("bf16[240,8192] @ bf16[8192,32768]", on="tpu-v5e"),
    "roofline.limiter": lambda: assay.roofline("bf16[240,8192] @ bf16[8192,32768]", on="tpu-v5e").limiter,
    "train": lambda: assay.train("llama-3-8b", on="h100-sxm:8", batch="64seq", seq=4096, fsdp=8, tp=1, pp=1),
}.items():
    call()
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < 1:
        call()
        calls += 1
    print(f"{name:16}  {calls / (time.perf_counter() - start):8.0f} calls/s")
