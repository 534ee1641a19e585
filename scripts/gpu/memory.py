"""Memory of one CUDA GPU that holds neither weights nor caches: what the driver hides, what a process of PyTorch takes, what captured
graphs take, and what the allocator holds over the activations of prompts of all lengths.

Usage: python3 memory.py
"""
import random

import torch
import torch.nn.functional as F

mib = 2**20
device, dtype = "cuda", torch.bfloat16


def outside():
    """MiB that are in use and not PyTorch's own."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return (total - free - torch.cuda.memory_reserved()) / mib


def graphs(x, w):
    def step(z, layers):
        for _ in range(layers):
            z = F.rms_norm(F.silu(z @ w) + x[:z.shape[0]], (w.shape[1],))
        return z

    step(x, 2)
    pool, kept, kernels, before = torch.cuda.graph_pool_handle(), [], 0, None
    for i, layers in enumerate([32] * 4 + [64] * 4 + [128] * 12):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            result = step(x[:x.shape[0] - i], layers)
        graph.replay()
        kept.append((graph, result))
        if before is None:
            before = outside()
            print("first graph, MiB outside", before)
        else:
            kernels += 4 * layers
    print("KiB of a kernel in a graph", (outside() - before) * 1024 / kernels)


def prompts():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(num_hidden_layers=32, hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
                         head_dim=128, vocab_size=128256, max_position_embeddings=131072)
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = LlamaForCausalLM(config)
    torch.cuda.empty_cache()
    weights, held = torch.cuda.memory_allocated() / mib, torch.cuda.memory_reserved() / mib
    random.seed(1)
    with torch.no_grad():
        for length in [8192] + [random.randint(100, 8192) for _ in range(40)]:
            tokens = torch.randint(0, 1000, (1, length), device=device)
            model(tokens, use_cache=True, logits_to_keep=1)
    print("weights", weights, "held", held, "peak above weights", torch.cuda.max_memory_allocated() / mib - weights, "held",
          torch.cuda.max_memory_reserved() / mib - held)


free, total = torch.cuda.mem_get_info()
print("MiB that the driver shows", total / mib, "context", (total - free) / mib)
x = torch.randn(64, 4096, device=device, dtype=dtype)
w = torch.randn(4096, 4096, device=device, dtype=dtype)
x @ w
q = torch.randn(4, 32, 512, 128, device=device, dtype=dtype)
F.scaled_dot_product_attention(q, q, q, is_causal=True)
torch.softmax(x.float(), -1).sort()
F.silu(F.rms_norm(x, (4096,))).argmax(-1)
print("context with libraries and kernels", outside())
graphs(x, w)
prompts()
