"""Times products of experts as serving engines in Python run them: one Triton kernel whose blocks each multiply some rows of one expert.

Usage: python3 expert_blocks.py [seconds [format...]] > rows.csv
Tokens choose their experts at random and the device holds some of them (`held` of `experts`). Columns: the block's rows, columns and depth,
warps and stages; tokens, choices of each, experts, held, n, k; blocks that had rows, experts that had rows, microseconds of one product, as
it runs in a train of products with different weights that is replayed from a CUDA graph.
"""
import random
import sys
import time

import torch
import triton
import triton.language as tl

device = "cuda"


@triton.jit
def blocks_of_experts(a, b, c, a_scale, b_scale, slots, expert_of, last, n, k, choices: tl.constexpr, scaled: tl.constexpr,
                      rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr, together: tl.constexpr):
    pid = tl.program_id(0)
    row_blocks = tl.load(last)
    column_blocks = tl.cdiv(n, columns)
    band = pid // (together * column_blocks)
    first = band * together
    height = min(row_blocks - first, together)
    if height <= 0:
        return
    row = first + (pid % (together * column_blocks)) % height
    column = (pid % (together * column_blocks)) // height
    if row >= row_blocks:
        return
    slot = tl.load(slots + row * rows + tl.arange(0, rows)).to(tl.int64)
    real = slot >= 0
    expert = tl.load(expert_of + row).to(tl.int64)
    wide = (column * columns + tl.arange(0, columns)) % n
    deep = tl.arange(0, depth)
    token = slot // choices
    left = a + token[:, None] * k + deep[None, :]
    right = b + expert * n * k + wide[None, :] * k + deep[:, None]
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, depth)):
        x = tl.load(left, mask=real[:, None] & (deep[None, :] < k - step * depth), other=0.0)
        w = tl.load(right, mask=deep[:, None] < k - step * depth, other=0.0)
        if scaled:
            group = step * depth // 128
            xs = tl.load(a_scale + token * (k // 128) + group, mask=real, other=0.0)
            ws = tl.load(b_scale + expert * (n // 128) * (k // 128) + (wide // 128) * (k // 128) + group)
            total += tl.dot(x, w) * xs[:, None] * ws[None, :]
        else:
            total += tl.dot(x, w)
        left += depth
        right += depth
    place = column * columns + tl.arange(0, columns)
    tl.store(c + slot[:, None] * n + place[None, :], total.to(c.dtype.element_ty), mask=real[:, None] & (place[None, :] < n))


def aligned(choice, experts, held, rows):
    """Slots sorted by expert, each expert's filled up to whole blocks; the expert of each block."""
    flat = choice.flatten()
    slots, owner, used = [], [], 0
    for expert in range(held):
        mine = (flat == expert).nonzero().flatten()
        if len(mine) == 0:
            continue
        used += 1
        pad = -len(mine) % rows
        slots.append(torch.cat([mine, mine.new_full((pad,), -1)]))
        owner += [expert] * ((len(mine) + pad) // rows)
    if not used:
        return None
    return torch.cat(slots).int(), torch.tensor(owner, dtype=torch.int32, device=device), len(owner), used


def time_of(block, dtype, tokens, choices, experts, held, n, k):
    rows, columns, depth, together, warps, stages = block
    scaled = dtype == "fp8-128x128"
    kind = torch.float8_e4m3fn if dtype.startswith("fp8") else torch.bfloat16
    size = held * n * k * kind.itemsize
    copies = max(1, min(16, int(400e6 // size) + 1))
    weights = [torch.randn(held, n, k, device=device, dtype=torch.bfloat16).to(kind) for _ in range(copies)]
    x = torch.randn(tokens, k, device=device, dtype=torch.bfloat16).to(kind)
    out = torch.empty(tokens * choices, n, device=device, dtype=torch.bfloat16)
    xs = torch.ones(tokens, max(1, k // 128), device=device)
    ws = torch.ones(held, max(1, n // 128), max(1, k // 128), device=device)
    sets = []
    for _ in range(8):
        made = aligned(torch.rand(tokens, experts, device=device).topk(choices, dim=-1).indices, experts, held, rows)
        if made:
            sets.append((made[0], made[1], torch.tensor([made[2]], dtype=torch.int32, device=device), made[2], made[3]))
    if not sets:
        return None
    most = max(one[3] for one in sets)
    grid = (most * triton.cdiv(n, columns),)

    def launch(i):
        slots, owner, last, _, _ = sets[i % len(sets)]
        blocks_of_experts[grid](x, weights[i % copies], out, xs, ws, slots, owner, last, n, k, choices, scaled, rows, columns, depth,
                                together, num_warps=warps, num_stages=stages)

    launch(0)
    torch.cuda.synchronize()
    train = 40
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(train):
            launch(i)
    times = []
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / train)
    mean = [sum(one[i] for one in sets) / len(sets) for i in (3, 4)]
    return sorted(times)[len(times) // 2], mean[0], mean[1]


BLOCKS = {
    "bf16": [(16, 32, 64, 1, 4, 3), (64, 64, 32, 8, 4, 3), (16, 64, 128, 1, 4, 4), (16, 128, 64, 1, 4, 4), (32, 128, 64, 1, 4, 4),
             (64, 128, 64, 8, 4, 4), (128, 128, 64, 8, 8, 3), (128, 256, 64, 16, 8, 4)],
    "fp8": [(16, 32, 64, 1, 4, 3), (64, 64, 32, 8, 4, 3), (16, 128, 128, 1, 4, 4), (32, 128, 128, 1, 4, 4), (64, 128, 128, 8, 4, 4),
            (128, 256, 128, 16, 8, 3)],
    "fp8-128x128": [(64, 128, 128, 32, 4, 3), (16, 128, 128, 1, 4, 4), (32, 128, 128, 1, 4, 3), (128, 128, 128, 16, 8, 3)],
}


def main():
    end = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 300)
    draw = random.Random(20261119)
    print("dtype,rows,columns,depth,warps,stages,tokens,choices,experts,held,n,k,blocks,used,us", flush=True)
    while time.time() < end:
        experts = 2 ** draw.randint(3, 8)
        held = max(2, experts // draw.choice([1, 2, 4, 8]))
        choices = min(draw.choice([1, 2, 4, 6, 8]), experts // 2)
        width, inner = draw.choice([1024, 2048, 2880, 4096, 5120, 7168]), draw.choice([384, 768, 1536, 2048, 2816, 4096, 8192])
        tokens = int(2 ** draw.uniform(2, 11))
        n, k = draw.choice([(2 * inner, width), (width, inner)])
        if held * n * k > 2**32:
            continue
        dtype = draw.choice(sys.argv[2:] or ["bf16", "bf16", "fp8", "fp8-128x128"])
        if dtype == "fp8-128x128" and (n % 128 or k % 128):
            continue
        for block in draw.sample(BLOCKS[dtype], 2) + BLOCKS[dtype][:1 if dtype == "fp8-128x128" else 2]:
            found = time_of(block, dtype, tokens, choices, experts, held, n, k)
            if found:
                print(dtype, *block[:3], *block[4:], tokens, choices, experts, held, n, k, f"{found[1]:.3f}", f"{found[2]:.3f}", f"{found[0]:.2f}",
                      sep=",", flush=True)


if __name__ == "__main__":
    main()
