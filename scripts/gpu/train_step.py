"""The training step of `assay run train llama-3-8b --layers 4 --engine cuda` in PyTorch and Hugging Face, on one CUDA GPU.

Usage: python3 train_step.py [SEQUENCES [TOKENS]] > rows.csv
The formats of our engine: weights and activations in bf16, master copy and moments of AdamW in fp32, to which gradients are
cast; and for comparison all of them in bf16, which most scripts do. Eager and compiled; attention by PyTorch's own choice (SDPA).
"""
import statistics
import sys

import torch
import transformers

sequences = int(sys.argv[1]) if len(sys.argv) > 1 else 1
tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 4096


def step_of(master, compiled):
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, max_position_embeddings=8192, use_cache=False)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").train()
    run = torch.compile(model) if compiled else model
    weights = list(model.parameters())
    kept = [w.detach().float() for w in weights] if master else weights
    optimizer = torch.optim.AdamW(kept, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    batch = torch.randint(0, 256, (sequences, tokens), device="cuda")

    def step():
        loss = run(input_ids=batch, labels=batch).loss
        loss.backward()
        if master:
            for wide, weight in zip(kept, weights):
                wide.grad = weight.grad.float()
                weight.grad = None
        optimizer.step()
        if master:
            with torch.no_grad():
                torch._foreach_copy_(weights, kept)
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


def seconds(step, times=10):
    for _ in range(3):
        loss = step()
    taken = []
    for _ in range(times):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        loss = step()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / 1e3)
    return statistics.median(taken), loss.item()


torch.manual_seed(0)
print("numbers,how,seconds,loss")
for master, compiled in [(True, False), (False, False), (True, True)]:
    taken, loss = seconds(step_of(master, compiled))
    print(f"{'fp32 master' if master else 'bf16'},{'compiled' if compiled else 'eager'},{taken:.6f},{loss:.3f}", flush=True)
    torch._dynamo.reset()
    torch.cuda.empty_cache()
