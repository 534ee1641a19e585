"""How long one CUDA GPU takes to pick next tokens, as engines written in PyTorch do it: the most likely token of each sequence; one drawn by
temperature alone; one of the most likely K, or of the nucleus of mass P, or both, for which the logits of each sequence are sorted.

Usage: python3 sampling.py > sampling.csv     columns: way, sequences, vocabulary, microseconds
"""
import torch

device = "cuda"


def probabilities_drawn(logits):
    weights = logits.softmax(-1, dtype=torch.float32)
    noise = torch.empty_like(weights).exponential_()
    return weights.div_(noise).argmax(-1)


def nucleus(logits, k, p):
    """Masks what is outside of the K most likely tokens and of the nucleus, as engines do over sorted logits."""
    in_order, place = logits.sort(-1)
    if k is not None:
        least = in_order.gather(1, in_order.size(1) - k.to(torch.long).unsqueeze(1))
        in_order.masked_fill_(in_order < least, -float("inf"))
    if p is not None:
        mass = in_order.softmax(-1).cumsum_(-1)
        outside = mass <= 1 - p.unsqueeze(1)
        outside[:, -1] = False
        in_order.masked_fill_(outside, -float("inf"))
    return in_order.scatter(-1, place, in_order)


def ways(n):
    k = torch.full((n,), 20, device=device, dtype=torch.int32)
    p = torch.full((n,), 0.95, device=device)
    heat = torch.full((n, 1), 0.7, device=device)
    return {
        "greedy": lambda logits: logits.float().argmax(-1),
        "temperature": lambda logits: probabilities_drawn(logits.float().div_(heat)),
        "nucleus": lambda logits: probabilities_drawn(nucleus(logits.float().div_(heat), None, p)),
        "top_k and nucleus": lambda logits: probabilities_drawn(nucleus(logits.float().div_(heat), k, p)),
    }


def microseconds(step, repeats=20):
    for _ in range(3):
        step()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return sorted(1e3 * a.elapsed_time(b) for a, b in zip(events, events[1:]))[repeats // 2]


def main():
    print("way,sequences,vocabulary,microseconds")
    for vocabulary in (32000, 128256, 151936, 262144):
        for n in (1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024):
            logits = torch.randn(n, vocabulary, device=device, dtype=torch.bfloat16) * 3
            for name, way in ways(n).items():
                print(f"{name},{n},{vocabulary},{microseconds(lambda: way(logits)):.1f}", flush=True)


if __name__ == "__main__":
    main()
