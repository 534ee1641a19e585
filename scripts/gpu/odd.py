"""Times matrix products whose sizes are no multiples of 64, in the layouts of a forward and a backward pass on one CUDA GPU through PyTorch: rows in the form of catalogue/validation/h200_odd.csv.

Usage: python3 odd.py > rows.csv
gemm multiplies a[m,k] with b[n,k], gemm_input (the gradient of an input) a[m,k] with b[k,n], gemm_weight (the gradient of a weight)
a[k,m] with b[k,n]: each as its tensor lies in memory. Only rows of gemm are in the table; the others show that the rows that count are those of tensors as they lie.
"""
import random

import torch

import ops
import products

make = products.make
make["input"] = lambda m, n, k: (lambda a, b: lambda: torch.mm(a, b))(ops.randn(m, k), ops.randn(k, n))
make["weight"] = lambda m, n, k: (lambda a, b: lambda: torch.mm(a.t(), b))(ops.randn(k, m), ops.randn(k, n))


def shapes(count):
    draw = random.Random(90210)
    steps = [1, 2, 4, 8, 8, 8, 8, 16, 16, 32]
    for index in range(count):
        m = draw.randint(129, 512) if index % 3 == 0 else ops.log_uniform(draw, 1, 16384, 1)
        n, k = (ops.log_uniform(draw, 256, 16384, draw.choice(steps)) for _ in range(2))
        m = max(1, min(m, 2**38 // (n * k)))
        yield "bf16", m, n, k
        if index % 2 == 0:
            yield "fp8", m, max(16, n // 16 * 16), max(16, k // 16 * 16)
        if index % 3 == 1:
            yield draw.choice(["input", "weight"]), max(16, m), n, k


def main():
    print("op,dtype,a,b,c,d,e,us_median,us_min,note")
    rows = list(shapes(300))
    for first in range(0, len(rows), 25):
        part = rows[first : first + 25]
        times = [ops.timed(ops.captured(make[kind](m, n, k))) for kind, m, n, k in part]
        for (kind, m, n, k), (median, least), name in zip(part, times, products.kernel_names(part)):
            op, dtype = ("gemm", kind) if kind in ("bf16", "fp8") else ("gemm_" + kind, "bf16")
            print(f"{op},{dtype},{m},{n},{k},,,{median:.2f},{least:.2f},{name}", flush=True)


if __name__ == "__main__":
    main()
