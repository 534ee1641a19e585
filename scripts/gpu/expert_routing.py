"""Times what engines whose products gather their rows themselves do before them, on one CUDA GPU: choosing experts, and sorting tokens by them.

Usage: python3 expert_routing.py > rows.csv
Two Triton kernels, as they run in a train of both that is replayed from a CUDA graph: softmax and the largest choices of each token, and one
kernel that counts the rows of experts, rounds them up to blocks of 16 and places every choice. Columns: tokens, experts, choices,
microseconds of both.
"""
import torch
import triton
import triton.language as tl

device = "cuda"


@triton.jit
def choose(logits, weights, ids, experts: tl.constexpr, choices: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, experts)
    share = tl.softmax(tl.load(logits + token * experts + at).to(tl.float32))
    for i in range(choices):
        most = tl.max(share, 0)
        which = tl.argmax(share, 0)
        tl.store(weights + token * choices + i, most)
        tl.store(ids + token * choices + i, which.to(tl.int32))
        share = tl.where(at == which, -1.0, share)


@triton.jit
def place(ids, slots, owner, last, places, count, experts: tl.constexpr, rows: tl.constexpr, step: tl.constexpr):
    at = tl.arange(0, experts)
    counted = tl.zeros((experts,), dtype=tl.int32)
    for start in range(0, count, step):
        i = start + tl.arange(0, step)
        counted += tl.histogram(tl.load(ids + i, mask=i < count, other=0), experts, mask=i < count)
    blocks = (counted + rows - 1) // rows
    ends = tl.cumsum(blocks, 0)
    tl.store(places + at, (ends - blocks) * rows)
    tl.store(last, tl.sum(blocks, 0))
    tl.debug_barrier()
    for start in range(0, count, step):
        i = start + tl.arange(0, step)
        expert = tl.load(ids + i, mask=i < count, other=0)
        to = tl.atomic_add(places + expert, 1, mask=i < count)
        tl.store(slots + to, i, mask=i < count)
        tl.store(owner + to // rows, expert, mask=i < count)


def main():
    print("tokens,experts,choices,us")
    for tokens in [1, 8, 64, 256, 1024, 4096]:
        for experts, choices in [(8, 2), (16, 1), (128, 8), (256, 8)]:
            logits = torch.randn(tokens, experts, device=device, dtype=torch.bfloat16)
            weights = torch.empty(tokens, choices, device=device)
            ids = torch.empty(tokens, choices, device=device, dtype=torch.int32)
            most = tokens * choices + experts * 16
            slots = torch.empty(most, device=device, dtype=torch.int32)
            owner, last = torch.empty(most // 16 + 1, device=device, dtype=torch.int32), torch.empty(1, device=device, dtype=torch.int32)
            places = torch.empty(experts, device=device, dtype=torch.int32)

            def both():
                choose[(tokens,)](logits, weights, ids, experts, choices, num_warps=1 if experts <= 128 else 2)
                place[(1,)](ids, slots, owner, last, places, tokens * choices, experts, 16, 1024, num_warps=8)

            both()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(50):
                    both()
            times = []
            for _ in range(9):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                times.append(start.elapsed_time(end) * 1e3 / 50)
            print(tokens, experts, choices, f"{sorted(times)[4]:.2f}", sep=",", flush=True)


if __name__ == "__main__":
    main()
