"""The decode step of `assay run serve llama-3-8b --layers 4 --engine cuda` in PyTorch and Hugging Face, on one CUDA GPU.

Usage: python3 decode_step.py [SEQUENCES [TOKENS]] > rows.csv
Weights and cache in bf16, a cache that is allocated once (StaticCache), attention by PyTorch's own choice (SDPA); eager, and
compiled into a CUDA graph.
"""
import statistics
import sys

import torch
import transformers

sequences = int(sys.argv[1]) if len(sys.argv) > 1 else 32
tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
new = 24

config = transformers.LlamaConfig(
    hidden_size=4096, intermediate_size=14336, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8,
    vocab_size=128256, max_position_embeddings=8192)
torch.manual_seed(0)
with torch.device("cuda"):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").eval()


def seconds(compiled):
    cache = transformers.StaticCache(config=config, max_cache_len=tokens + new + 8)
    run = torch.compile(model, mode="reduce-overhead") if compiled else model
    batch = torch.randint(0, 256, (sequences, tokens), device="cuda")
    with torch.inference_mode():
        model(input_ids=batch, past_key_values=cache, use_cache=True, logits_to_keep=1,
              cache_position=torch.arange(tokens, device="cuda"))
        taken = []
        for i in range(new):
            token = torch.randint(0, 256, (sequences, 1), device="cuda")
            position = torch.tensor([tokens + i], device="cuda")
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            run(input_ids=token, past_key_values=cache, use_cache=True, cache_position=position).logits[:, -1].argmax(-1)
            end.record()
            torch.cuda.synchronize()
            taken.append(start.elapsed_time(end) / 1e3)
    return statistics.median(taken[new // 2:])


print("how,seconds")
for compiled in (False, True):
    print(f"{'compiled' if compiled else 'eager'},{seconds(compiled):.6f}", flush=True)
