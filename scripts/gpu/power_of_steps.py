"""Power that one CUDA GPU draws while kernels run that neither stream memory nor keep matrix units busy, and in decode steps of
whole models: kernels replayed from graphs, with the bytes and FLOP that a step is priced by. The second half of four seconds counts.

Usage: python3 power_of_steps.py > steps.csv     columns: what, W, us of a replay, bytes/s, FLOP/s, MHz
"""
import subprocess
import threading
import time

import torch
import torch.nn.functional as F


def reading():
    query = ["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm", "--format=csv,noheader,nounits"]
    return [float(x) for x in subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0].split(",")]


def measure(what, work, byte_count=0, flop_count=0, seconds=4.0):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    torch.cuda.synchronize()
    at = time.time()
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
    burst = max(1, int(0.02 / ((time.time() - at) / 10)))
    rows, running = [], [True]

    def sample():
        while running:
            rows.append((time.time(), *reading()))

    thread = threading.Thread(target=sample)
    thread.start()
    begin, count = time.time(), 0
    while time.time() - begin < seconds:
        for _ in range(burst):
            graph.replay()
        torch.cuda.synchronize()
        count += burst
    end = time.time()
    running.clear()
    thread.join()
    late = [row for row in rows if begin + seconds / 2 < row[0] < end]
    watts, clock = (sum(row[i] for row in late) / len(late) for i in (1, 2))
    rate = count / (end - begin)
    print(f"{what},{watts:.1f},{1e6 / rate:.1f},{rate * byte_count:.4g},{rate * flop_count:.4g},{clock:.0f}", flush=True)


def tensor(*sizes, scale=1.0):
    return torch.randn(*sizes, dtype=torch.bfloat16, device="cuda") * scale


def small_kernels():
    one = tensor(64)
    measure("one block", lambda: [one.add_(0) for _ in range(200)])
    for rows in (8, 64, 512):
        x = tensor(rows, 4096)
        measure(f"add {rows}x4096", lambda: [x + x for _ in range(100)], 100 * 6 * rows * 4096)
        measure(f"norm {rows}x4096", lambda: [F.rms_norm(x, (4096,)) for _ in range(100)], 100 * 4 * rows * 4096)
    cached = tensor(4 << 20)
    other = torch.empty_like(cached)
    measure("copy of 8 MB", lambda: [other.copy_(cached) for _ in range(50)])
    scores = torch.randn(64, 128, device="cuda")
    measure("top 8 of 128", lambda: [torch.topk(scores, 8) for _ in range(50)])
    measure("sort 512", lambda: [torch.sort(scores.view(-1)[:512]) for _ in range(50)])
    for rows in (8, 64):
        x, w = tensor(rows, 2048), [tensor(2048, 2048, scale=0.02) for _ in range(4)]
        measure(f"rows {rows} in the cache", lambda: [torch.mm(x, m) for m in w * 10], 0, 40 * 2 * rows * 2048**2)


def attention(batch, heads, kv_heads, keys):
    q = tensor(batch, heads, 1, 128)
    caches = [(tensor(batch, kv_heads, keys, 128), tensor(batch, kv_heads, keys, 128)) for _ in range(4)]

    def work():
        for k, v in caches:
            F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    measure(f"decode {batch} x {keys} keys", work, 4 * 4 * batch * kv_heads * keys * 128, 4 * 4 * batch * heads * keys * 128)


def dense_step(rows, width, inner, heads, kv_heads, keys, layers=4):
    """Layers of a Llama-like model that decodes `rows` sequences."""
    head = width // heads
    shapes = [(width, width + 2 * kv_heads * head), (width, width), (width, 2 * inner), (inner, width)]
    weights = [[tensor(*s, scale=0.02) for s in shapes] for _ in range(layers)]
    caches = [(tensor(rows, kv_heads, keys, head), tensor(rows, kv_heads, keys, head)) for _ in range(layers)]
    x = tensor(rows, width)

    def work():
        h = x
        for (qkv, out, up, down), (k, v) in zip(weights, caches):
            n = F.rms_norm(h, (width,))
            q = torch.mm(n, qkv)[:, :width].view(rows, heads, 1, head)
            a = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
            h = h + torch.mm(a.reshape(rows, width), out)
            u = torch.mm(F.rms_norm(h, (width,)), up)
            h = h + torch.mm(F.silu(u[:, :inner]) * u[:, inner:], down)

    size = sum(a * b for a, b in shapes)
    measure(f"dense {rows} rows of {width}", work, layers * (2 * size + 4 * rows * kv_heads * keys * head),
            layers * (2 * rows * size + 4 * rows * heads * keys * head))


def expert_products(tokens, experts, picks, width, inner, layers=2):
    """Products of experts with even rows."""
    rows = tokens * picks
    ends = torch.tensor([rows * (i + 1) // experts for i in range(experts)], dtype=torch.int32, device="cuda")
    up = [tensor(experts, width, 2 * inner, scale=0.02) for _ in range(layers)]
    down = [tensor(experts, inner, width, scale=0.02) for _ in range(layers)]
    x = tensor(rows, width)

    def work():
        for u, d in zip(up, down):
            h = torch._grouped_mm(x, u, ends)
            torch._grouped_mm(F.silu(h[:, :inner]) * h[:, inner:], d, ends)

    touched = min(experts, rows)
    measure(f"experts {tokens} tokens {experts}x{inner}", work, layers * 2 * touched * 3 * width * inner,
            layers * 2 * rows * 3 * width * inner)


print("idle,", reading()[0])
small_kernels()
for batch, keys in ((8, 1024), (64, 1024), (64, 4096)):
    attention(batch, 32, 8, keys)
for rows in (8, 32, 128, 256):
    dense_step(rows, 4096, 14336, 32, 8, 1024)
for tokens in (8, 64, 512):
    expert_products(tokens, 128, 8, 2048, 768)
