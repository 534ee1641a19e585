"""Times attention of many head sizes on one CUDA GPU through PyTorch: rows in the form of catalogue/validation/h200_heads.csv.

Usage: python3 heads.py > rows.csv
Times are taken as in ops.py.
"""
import random

import ops

sizes = [40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256]
shapes = [(1, 32, 32, 2048), (2, 32, 8, 4096), (4, 16, 16, 1024), (1, 24, 8, 8192)]


def main():
    draw = random.Random(4242)
    print("op,dtype,a,b,c,d,e,us_median,us_min,note")
    rows = [(*shape, size) for size in sizes for shape in shapes]
    for _ in range(40):
        heads = draw.choice([8, 16, 24, 32, 48, 64])
        kv = draw.choice([heads, heads // 4, 8])
        batch, length = draw.choice([1, 2, 4, 8]), 2 ** draw.randint(9, 14)
        size = draw.choice([64, 80, 96, 128, 128, 160, 192])
        if batch * heads * length * length * size < 2**43:
            rows.append((batch, heads, kv, length, size))
    for batch, heads, kv, length, size in rows:
        for kernel in ops.kernels:
            for op, backward in [("attn_fwd_causal", False), ("attn_bwd_causal", True)]:
                ops.row(op, "bf16", [batch, heads, kv, length, size],
                        lambda: ops.attention(kernel, batch, heads, kv, length, length, size, True, backward), False, kernel)


if __name__ == "__main__":
    main()
