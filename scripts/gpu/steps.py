"""Times whole training steps, prefills and decode steps of Llama-like models on one CUDA GPU through PyTorch.

Usage: python3 steps.py train|prefill|decode > rows.csv
Models have random weights. Training: Hugging Face models, bf16 parameters, gradients and AdamW states, SDPA attention, eager or
torch.compile. Prefill: the same models, eager, one forward pass with its cache. Decode: a loop of our own (fused QKV and gate/up,
compiled element-wise steps, cuDNN attention on a grouped cache, CUDA graph), the whole step with head and argmax.
"""
import gc
import statistics
import sys
import time

import torch
import torch.nn.functional as F

# name: layers, width, ff, heads, kv heads, head size, vocabulary, tied
models = {
    "llama-3.2-1b": (16, 2048, 8192, 32, 8, 64, 128256, True),
    "llama-3.2-3b": (28, 3072, 8192, 24, 8, 128, 128256, True),
    "llama-3.1-8b": (32, 4096, 14336, 32, 8, 128, 128256, False),
    "llama-2-7b": (32, 4096, 11008, 32, 32, 128, 32000, False),
    "mistral-7b": (32, 4096, 14336, 32, 8, 128, 32000, False),
    "tinyllama-1.1b": (22, 2048, 5632, 32, 4, 64, 32000, False),
}


def hugging_face(name):
    from transformers import LlamaConfig, LlamaForCausalLM

    layers, width, ff, heads, kv, size, vocab, tied = models[name]
    config = LlamaConfig(num_hidden_layers=layers, hidden_size=width, intermediate_size=ff, num_attention_heads=heads,
                         num_key_value_heads=kv, head_dim=size, vocab_size=vocab, tie_word_embeddings=tied,
                         max_position_embeddings=131072, attn_implementation="sdpa")
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return LlamaForCausalLM(config)


def seconds(run, runs, warm=3):
    for _ in range(warm):
        run()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def train():
    print("model,batch,seq,remat,compiled,step_s,fwd_s,bwd_s,opt_s,peak_bytes,params,note")
    rows = [("llama-3.2-1b", 2, 2048, 0, 0), ("llama-3.2-1b", 1, 4096, 0, 0), ("llama-3.2-1b", 4, 4096, 1, 0), ("llama-3.2-1b", 1, 16384, 1, 0),
            ("llama-3.2-3b", 1, 2048, 0, 0), ("llama-3.2-3b", 4, 2048, 0, 0), ("llama-3.2-3b", 8, 2048, 1, 0),
            ("llama-2-7b", 1, 4096, 0, 0), ("llama-2-7b", 2, 4096, 1, 0), ("mistral-7b", 1, 8192, 1, 0), ("mistral-7b", 4, 2048, 0, 0),
            ("tinyllama-1.1b", 1, 2048, 0, 0), ("tinyllama-1.1b", 8, 2048, 0, 0), ("tinyllama-1.1b", 16, 2048, 1, 0),
            ("tinyllama-1.1b", 8, 2048, 0, 1), ("llama-3.2-3b", 4, 2048, 0, 1), ("llama-2-7b", 2, 2048, 0, 1)]
    loaded = None
    for name, batch, length, remat, compiled in sorted(rows, key=lambda r: (r[4], r[0], r[3])):
        try:
            if loaded != (name, remat, compiled):
                model = optimizer = call = None
                gc.collect()
                torch.cuda.empty_cache()
                torch._dynamo.reset()
                model = hugging_face(name)
                model.train()
                if remat:
                    model.gradient_checkpointing_enable()
                optimizer = torch.optim.AdamW(model.parameters(), fused=True)
                call = torch.compile(model) if compiled else model
                loaded = (name, remat, compiled)
            tokens = torch.randint(0, models[name][6], (batch, length), device="cuda")
            phases = []

            def step():
                torch.cuda.synchronize()
                t0 = time.perf_counter()
                loss = call(input_ids=tokens, labels=tokens, use_cache=False).loss
                torch.cuda.synchronize()
                t1 = time.perf_counter()
                loss.backward()
                torch.cuda.synchronize()
                t2 = time.perf_counter()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                torch.cuda.synchronize()
                phases.append((t1 - t0, t2 - t1, time.perf_counter() - t2))

            for _ in range(3):
                step()
            torch.cuda.reset_peak_memory_stats()
            phases.clear()
            total = seconds(step, 8, 0)
            peak = torch.cuda.max_memory_allocated()
            forward, backward, update = (statistics.median(p[i] for p in phases) for i in range(3))
            count = sum(p.numel() for p in model.parameters())
            print(f'{name},{batch},{length},{remat},{compiled},{total:.5f},{forward:.5f},{backward:.5f},{update:.5f},{peak},{count},"bf16 params, grads, AdamW states"', flush=True)
        except Exception as error:
            print(name, batch, length, remat, compiled, str(error).splitlines()[0], file=sys.stderr)
            loaded = None
            gc.collect()
            torch.cuda.empty_cache()


def prefill():
    print("model,phase,batch,context,mode,step_s,peak_bytes,params,note")
    for name in ["llama-3.2-3b", "llama-2-7b", "mistral-7b", "tinyllama-1.1b"]:
        gc.collect()
        torch.cuda.empty_cache()
        model = hugging_face(name).eval()
        count = sum(p.numel() for p in model.parameters())
        for batch, length in [(1, 256), (1, 768), (1, 1536), (1, 3072), (1, 6144), (1, 12288), (2, 4096), (4, 1024), (16, 1024), (32, 256)]:
            try:
                tokens = torch.randint(0, models[name][6], (batch, length), device="cuda")
                torch.cuda.reset_peak_memory_stats()
                with torch.inference_mode():
                    time_s = seconds(lambda: model(input_ids=tokens, use_cache=True, logits_to_keep=1), 10)
                print(f"{name},prefill,{batch},{length},eager,{time_s:.6f},{torch.cuda.max_memory_allocated()},{count},", flush=True)
            except Exception as error:
                print(name, batch, length, str(error).splitlines()[0], file=sys.stderr)
        model = None


def decode():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    print("model,weights,batch,context,step_s,layers,d_model,d_ff,heads,kv_heads,head_dim,vocab,weight_bytes,kv_bytes")
    torch._dynamo.config.recompile_limit = 1000  # each batch is a shape of its own
    one = torch.ones((), device="cuda")

    @torch.compile(dynamic=False)
    def norm(x, scale):
        return F.rms_norm(x, (x.shape[-1],), scale)

    @torch.compile(dynamic=False)
    def add_norm(x, y, scale):
        total = x + y
        return total, F.rms_norm(total, (total.shape[-1],), scale)

    @torch.compile(dynamic=False)
    def gate(x):
        a, b = x.chunk(2, -1)
        return F.silu(a) * b

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    @torch.compile(dynamic=False)
    def split(x, cos, sin, batch, heads, kv, size):
        q, k, v = x.view(batch, heads + 2 * kv, 1, size).split((heads, kv, kv), 1)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def product(x, weight):
        if weight.dtype == torch.bfloat16:
            return F.linear(x, weight)
        rows = max(16, x.shape[0])
        x8 = x.to(torch.float8_e4m3fn)
        if rows != x.shape[0]:
            x8 = F.pad(x8.view(torch.int8), (0, 0, 0, rows - x.shape[0])).view(torch.float8_e4m3fn)
        return torch._scaled_mm(x8, weight.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)[: x.shape[0]]

    for name in ["llama-3.2-3b", "llama-2-7b", "mistral-7b", "tinyllama-1.1b"]:
        layers, width, ff, heads, kv, size, vocab, tied = models[name]
        for dtype in ["bf16", "fp8"]:
            gc.collect()
            torch.cuda.empty_cache()

            def weight(rows, columns):
                w = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * 0.02
                return w if dtype == "bf16" else w.to(torch.float8_e4m3fn)

            blocks = [(weight((heads + 2 * kv) * size, width), weight(width, heads * size), weight(2 * ff, width), weight(width, ff),
                       torch.ones(width, device="cuda", dtype=torch.bfloat16), torch.ones(width, device="cuda", dtype=torch.bfloat16)) for _ in range(layers)]
            head = torch.randn(vocab, width, device="cuda", dtype=torch.bfloat16) * 0.02
            embedding = head if tied else torch.randn(vocab, width, device="cuda", dtype=torch.bfloat16)
            scale = torch.ones(width, device="cuda", dtype=torch.bfloat16)
            held = sum(t.numel() * t.element_size() for b in blocks for t in b) + head.numel() * 2
            for batch, length in [(1, 2048), (1, 16384), (4, 1024), (4, 16384), (16, 2048), (32, 512), (32, 4096), (64, 1024), (128, 512), (128, 1024), (256, 512), (512, 256)]:
                if 2 * 2 * batch * length * kv * size * layers > 90e9:
                    continue
                cache = graph = None
                gc.collect()
                torch.cuda.empty_cache()
                try:
                    cache = [(torch.randn(batch, kv, length, size, device="cuda", dtype=torch.bfloat16), torch.randn(batch, kv, length, size, device="cuda", dtype=torch.bfloat16)) for _ in range(layers)]
                    tokens = torch.randint(0, vocab, (batch,), device="cuda")
                    cos = torch.randn(1, 1, 1, size // 2, device="cuda", dtype=torch.bfloat16)
                    sin = torch.randn(1, 1, 1, size // 2, device="cuda", dtype=torch.bfloat16)

                    def step():
                        x = embedding[tokens]
                        y = norm(x, blocks[0][4])
                        for index, (qkv, out, up, down, _, second) in enumerate(blocks):
                            q, k, v = split(product(y, qkv), cos, sin, batch, heads, kv, size)
                            keys, values = cache[index]
                            keys[:, :, -1:] = k
                            values[:, :, -1:] = v
                            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                                a = F.scaled_dot_product_attention(q, keys, values, enable_gqa=heads != kv)
                            x, y = add_norm(x, product(a.reshape(batch, heads * size), out), second)
                            following = blocks[index + 1][4] if index + 1 < layers else scale
                            x, y = add_norm(x, product(gate(product(y, up)), down), following)
                        tokens.copy_(F.linear(y, head).argmax(-1))

                    with torch.inference_mode():
                        stream = torch.cuda.Stream()
                        stream.wait_stream(torch.cuda.current_stream())
                        with torch.cuda.stream(stream):
                            for _ in range(3):
                                step()
                        torch.cuda.current_stream().wait_stream(stream)
                        graph = torch.cuda.CUDAGraph()
                        with torch.cuda.graph(graph):
                            step()
                        time_s = seconds(graph.replay, 20)
                    kv_bytes = 2 * 2 * batch * length * kv * size * layers
                    print(f"{name},{dtype},{batch},{length},{time_s:.6f},{layers},{width},{ff},{heads},{kv},{size},{vocab},{held},{kv_bytes}", flush=True)
                except Exception as error:
                    print(name, dtype, batch, length, str(error).splitlines()[0], file=sys.stderr)
            blocks = head = embedding = cache = graph = None


{"train": train, "prefill": prefill, "decode": decode}[sys.argv[1]]()
