"""Times matrix products of random shapes on one CUDA GPU through PyTorch, and names the kernels that its library chose: rows in the form of
catalogue/validation/h200_products.csv.

Usage: python3 products.py [SEED COUNT] > rows.csv
Shapes are drawn and timed as in ops.py, with another seed.
"""
import random
import re
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import ops

make = {"bf16": ops.gemm, "fp8": ops.gemm_fp8}
widths = [768, 1024, 1536, 2048, 2560, 2880, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 12288, 14336, 16384, 28672]


def shapes(seed, count):
    draw = random.Random(seed)
    for index in range(count):
        m = ops.log_uniform(draw, 1, 32768, 1) if index % 3 == 0 else 2 ** draw.randint(0, 15)
        n, k = draw.choice(widths), draw.choice(widths)
        if index % 5 == 0:
            n, k = ops.log_uniform(draw, 128, 16384, 64), ops.log_uniform(draw, 64, 16384, 64)
        m = max(1, min(m, 2**42 // (n * k)))
        yield "bf16", m, n, k
        if index % 2 == 0:
            yield "fp8", max(16, m // 16 * 16), n, k


def kernel_names(products):
    """Of each product: what runs between two marks."""
    mark = torch.ones(4, device=ops.device)
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for dtype, m, n, k in products:
            run = make[dtype](m, n, k)
            mark.cos_()
            run()
            mark.sinh_()
            torch.cuda.synchronize()
    events = [e for e in recorded.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    names, current = [], None
    for event in sorted(events, key=lambda e: e.time_range.start):
        if "sinh" in event.name:
            names.append(" + ".join(current))
            current = None
        elif "cos" in event.name:
            current = []
        elif current is not None and "Memset" not in event.name:
            current.append(re.sub(r"[ ,<(].*", "", event.name.replace("void ", "")).split("::")[-1])
    return names


def main():
    print("op,dtype,a,b,c,d,e,us_median,us_min,note")
    seed, count = (int(x) for x in sys.argv[1:]) if len(sys.argv) > 1 else (4711, 700)
    products = list(shapes(seed, count))
    for first in range(0, len(products), 25):
        part = products[first : first + 25]
        times = [ops.timed(ops.captured(make[dtype](m, n, k))) for dtype, m, n, k in part]
        for (dtype, m, n, k), (median, least), name in zip(part, times, kernel_names(part)):
            print(f"gemm,{dtype},{m},{n},{k},,,{median:.2f},{least:.2f},{name}", flush=True)


if __name__ == "__main__":
    main()
