"""Power that one CUDA GPU draws by load: reads of memory and matmuls for a share of the time, and matmuls of a decode step (weights that
stream through a few rows). The second half of five seconds counts, by the driver's instantaneous reading.

Usage: python3 power.py > power.csv     columns: what, share of the time with work, W, bytes/s, FLOP/s, MHz
"""
import subprocess
import threading
import time

import torch


def reading():
    query = ["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm", "--format=csv,noheader,nounits"]
    return [float(x) for x in subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0].split(",")]


def measure(what, work, byte_count, flop_count, share=1.0, seconds=5.0):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.time()
    work()
    torch.cuda.synchronize()
    burst = max(1, int(0.01 / max(time.time() - start, 1e-5)))
    rows, running = [], [True]

    def sample():
        while running:
            rows.append((time.time(), *reading()))

    thread = threading.Thread(target=sample)
    thread.start()
    begin, count = time.time(), 0
    while time.time() - begin < seconds:
        at = time.time()
        for _ in range(burst):
            work()
        torch.cuda.synchronize()
        count += burst
        if share < 1:
            time.sleep((time.time() - at) * (1 - share) / share)
    end = time.time()
    running.clear()
    thread.join()
    late = [row for row in rows if begin + seconds / 2 < row[0] < end]
    watts, clock = (sum(row[i] for row in late) / len(late) for i in (1, 2))
    rate = count / (end - begin)
    print(f"{what},{share},{watts:.1f},{rate * byte_count:.4g},{rate * flop_count:.4g},{clock:.0f}", flush=True)


print("idle", reading()[0])
torch.zeros(1, device="cuda")
time.sleep(3)
print("with a context", reading()[0])
numbers = torch.randint(-100, 100, (1 << 31,), dtype=torch.int8, device="cuda").view(torch.int32)
for share in (0.25, 0.5, 0.75, 1.0):
    measure("read", lambda: torch.max(numbers), 1 << 31, 0, share)
del numbers
side = 8192
weights = [torch.randn(side, side, dtype=torch.bfloat16, device="cuda") * 0.02 for _ in range(8)]
for rows in (1, 8, 32, 64, 128, 256, 512):
    x = torch.randn(rows, side, dtype=torch.bfloat16, device="cuda")
    measure(f"rows {rows}", lambda: [torch.mm(x, w) for w in weights], 16 * side**2, 16 * rows * side**2)
x = torch.randn(side, side, dtype=torch.bfloat16, device="cuda")
for share in (0.25, 0.5, 0.75, 1.0):
    measure("matmul bf16", lambda: torch.mm(x, weights[0]), 6 * side**2, 2 * side**3, share)
one = torch.tensor(1.0, device="cuda")
a, b = x.to(torch.float8_e4m3fn), weights[0].to(torch.float8_e4m3fn).t().contiguous().t()
for share in (0.5, 1.0):
    fp8 = lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    measure("matmul fp8", fp8, 4 * side**2, 2 * side**3, share)
