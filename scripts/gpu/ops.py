"""Times single kernels of one CUDA GPU through PyTorch and prints rows in the form of catalogue/validation/h200_ops.csv.

Usage: python3 ops.py > rows.csv
The second-level cache is flushed before each run; products, copies and element-wise kernels are replayed from a CUDA graph,
attention and the optimizer are called eagerly, behind so many flushes that the host is ahead of the device: no time of the host is in them.
The chip rests before each shape, the longer the more the last one took, so that its clock has recovered.
Shapes are drawn at random with a fixed seed, so that no shape is chosen to fit a model.
"""
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

device = "cuda"
flush_buffer = torch.empty(512 * 2**20, dtype=torch.int8, device=device)
kernels = {"flash2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def timed(run, runs=25, flushes=1):
    """Median and minimum in microseconds; long kernels run fewer times."""

    def once():
        for _ in range(flushes):
            flush_buffer.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    torch.cuda.synchronize()
    time.sleep(timed.pause)
    begin = time.perf_counter()
    longest = max(once() for _ in range(3))
    times = [once() for _ in range(runs if longest < 10000 else 7)]
    timed.pause = min(0.03 + 2 * (time.perf_counter() - begin), 0.6)
    return statistics.median(times), min(times)


timed.pause = 0.1


def captured(run):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def row(op, dtype, sizes, make, graph, note=""):
    try:
        run = make()
        median, least = timed(captured(run)) if graph else timed(run, flushes=12)
    except Exception as error:  # one shape that a library refuses must not lose the others
        print(f"{op} {dtype} {sizes} {note}: {str(error).splitlines()[0]}", file=sys.stderr)
        return
    finally:
        run = None
    fields = list(sizes) + [""] * (5 - len(sizes))
    print(",".join([op, dtype] + [str(f) for f in fields] + [f"{median:.2f}", f"{least:.2f}", note]), flush=True)


def randn(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def gemm(m, n, k):
    a, b = randn(m, k), randn(n, k)
    return lambda: torch.mm(a, b.t())


def gemm_fp8(m, n, k):
    a, b = randn(m, k).to(torch.float8_e4m3fn), randn(n, k).to(torch.float8_e4m3fn)
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def bmm(m, n, k, batch):
    a, b = randn(batch, m, k), randn(batch, n, k)
    return lambda: torch.bmm(a, b.transpose(1, 2))


def attention(kernel, batch, heads, kv_heads, queries, keys, size, causal, backward):
    q = randn(batch, heads, queries, size).requires_grad_(backward)
    k = randn(batch, kv_heads, keys, size).requires_grad_(backward)
    v = randn(batch, kv_heads, keys, size).requires_grad_(backward)

    def forward():
        with sdpa_kernel(kernels[kernel]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)

    if not backward:
        return forward
    out = forward()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def adamw(elements):
    parameter = randn(elements).requires_grad_(True)
    parameter.grad = randn(elements)
    optimizer = torch.optim.AdamW([parameter], fused=True)
    return optimizer.step


def elementwise(op, tokens, width):
    x, y, scale = randn(tokens, width), randn(tokens, width), randn(width)
    if op == "rms_norm":
        return lambda: F.rms_norm(x, (width,), scale)
    if op == "add":
        return lambda: x + y
    if op == "silu":
        return lambda: F.silu(x)
    return lambda: F.softmax(x, dim=-1)


def copy(size):
    a = torch.randint(-100, 100, (size,), dtype=torch.int8, device=device)
    b = torch.empty_like(a)
    return lambda: b.copy_(a)


def log_uniform(draw, low, high, multiple):
    return max(multiple, round(low * (high / low) ** draw.random() / multiple) * multiple)


def main():
    draw = random.Random(20261115)
    print("op,dtype,a,b,c,d,e,us_median,us_min,note")
    for power in range(18, 34):
        row("copy", "int8", [2**power], lambda: copy(2**power), True)
    widths = [768, 1024, 1536, 2048, 2560, 2880, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 12288, 14336, 16384, 28672]
    for index in range(220):
        m = log_uniform(draw, 1, 32768, 1) if index % 3 == 0 else 2 ** draw.randint(0, 15)
        n, k = draw.choice(widths), draw.choice(widths)
        if index % 5 == 0:
            n, k = log_uniform(draw, 128, 16384, 64), log_uniform(draw, 64, 16384, 64)
        if m * n * k > 2**42:
            m = max(1, 2**42 // (n * k))
        row("gemm", "bf16", [m, n, k], lambda: gemm(m, n, k), True)
        if index % 2 == 0:
            m8 = max(16, m // 16 * 16)
            row("gemm", "fp8", [m8, n, k], lambda: gemm_fp8(m8, n, k), True)
    for _ in range(24):
        m, n, k, batch = 2 ** draw.randint(3, 11), draw.choice(widths[:12]), draw.choice(widths[:12]), 2 ** draw.randint(1, 7)
        if batch * n * k <= 2**31 and batch * m * max(n, k) <= 2**31:
            row("bmm", "bf16", [m, n, k, batch], lambda: bmm(m, n, k, batch), True)
    for _ in range(40):
        heads = draw.choice([8, 16, 24, 32, 40, 48, 64, 96])
        kv = draw.choice([heads, heads // 4, heads // 8, 8 if heads % 8 == 0 else heads])
        size, length = draw.choice([64, 64, 128, 128, 128, 256]), 2 ** draw.randint(8, 15)
        batch = draw.choice([1, 1, 2, 4, 8, 16, 32])
        if batch * heads * length * length * size > 2**45:
            continue
        for kernel in kernels:
            row("attn_fwd_causal", "bf16", [batch, heads, kv, length, size],
                lambda: attention(kernel, batch, heads, kv, length, length, size, True, False), False, kernel)
            row("attn_bwd_causal", "bf16", [batch, heads, kv, length, size],
                lambda: attention(kernel, batch, heads, kv, length, length, size, True, True), False, kernel)
    for _ in range(70):
        kv = draw.choice([1, 2, 4, 8, 8, 8, 16, 32])
        heads = kv * draw.choice([1, 2, 4, 4, 8, 8, 16])
        size, batch, length = draw.choice([64, 128, 128, 128, 256]), 2 ** draw.randint(0, 9), log_uniform(draw, 128, 131072, 64)
        if heads > 128 or batch * kv * length * size > 2**33:
            continue
        for kernel in kernels:
            row("attn_decode", "bf16", [batch, heads, kv, length, size],
                lambda: attention(kernel, batch, heads, kv, 1, length, size, False, False), False, kernel)
    for _ in range(20):
        tokens, width = 2 ** draw.randint(0, 16), draw.choice(widths)
        for op in ["rms_norm", "add", "silu", "softmax"]:
            row(op, "bf16", [tokens, width], lambda: elementwise(op, tokens, width), True)
    for elements in [10**5, 10**6, 3 * 10**6, 3 * 10**7, 3 * 10**8, 3 * 10**9]:
        row("adamw_fused", "bf16", [elements], lambda: adamw(elements), False)


if __name__ == "__main__":
    main()
