"""Times products of experts on one CUDA GPU through PyTorch and prints rows in the form of catalogue/validation/h200_ops.csv.

Usage: python3 experts.py > rows.csv
Tokens choose their experts at random, so that groups are uneven. The sizes of `grouped_gemm` are rows of all experts, n, k,
experts: every expert multiplies its own rows. `grouped_wgrad` makes gradients of weights: m, n, rows of all experts, experts. The
second-level cache is flushed before each run, and products are replayed from a CUDA graph.
"""
import random

import torch

from ops import device, log_uniform, randn, row


def chosen(tokens, experts, k):
    return torch.rand(tokens, experts, device=device).topk(k, dim=-1).indices


def ends(choice, experts):
    return torch.bincount(choice.flatten(), minlength=experts).cumsum(0).to(torch.int32)


def grouped(tokens, experts, k, n, width):
    x, w, offs = randn(tokens * k, width), randn(experts, n, width), ends(chosen(tokens, experts, k), experts)
    return lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=offs)


def grouped_wgrad(tokens, experts, k, n, width):
    x, y, offs = randn(tokens * k, width), randn(tokens * k, n), ends(chosen(tokens, experts, k), experts)
    return lambda: torch._grouped_mm(y.t(), x, offs=offs)


def main():
    draw = random.Random(20261116)
    print("op,dtype,a,b,c,d,e,us_median,us_min,note")
    for _ in range(60):
        experts = 2 ** draw.randint(2, 7)
        k = min(experts, draw.choice([1, 2, 4, 6, 8]))
        width, n = draw.choice([1024, 2048, 2880, 4096, 5120, 6144, 7168]), draw.choice([768, 1408, 1536, 2048, 2880, 4096, 8192, 14336])
        tokens = log_uniform(draw, 16, 32768, 8)
        if experts * n * width > 2**33 or tokens * k * max(n, width) > 2**31:
            continue
        slots = tokens * k
        row("grouped_gemm", "bf16", [slots, n, width, experts], lambda: grouped(tokens, experts, k, n, width), True)
        row("grouped_gemm", "bf16", [slots, width, n, experts], lambda: grouped(tokens, experts, k, width, n), True)
        row("grouped_wgrad", "bf16", [n, width, slots, experts], lambda: grouped_wgrad(tokens, experts, k, n, width), True)


if __name__ == "__main__":
    main()
