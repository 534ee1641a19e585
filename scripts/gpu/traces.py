"""Profiles of training, prefill and decode steps of model families on one CUDA GPU through PyTorch and Hugging Face.

Usage: python3 traces.py FOLDER [NAME...]
Each file is one step after warm-up, two of decoding; its seconds without the profiler are printed. Some are in tests/data/profiles;
docs/profile.md has the classes of all of them.
"""
import gzip
import os
import sys
import tempfile

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

steps = {
    "gpt2-xl-6l-train": dict(
        config=transformers.GPT2Config(n_embd=1600, n_layer=6, n_head=25, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
        batch=8, sequence=1024),
    "llama13b-3l-train-recompute": dict(
        config=transformers.LlamaConfig(hidden_size=5120, intermediate_size=13824, num_hidden_layers=3, num_attention_heads=40,
                                        vocab_size=32000, max_position_embeddings=4096),
        batch=2, sequence=4096, recompute=True),
    "qwen25-7b-4l-train": dict(
        config=transformers.Qwen2Config(hidden_size=3584, intermediate_size=18944, num_hidden_layers=4, num_attention_heads=28,
                                        num_key_value_heads=4, vocab_size=152064, max_position_embeddings=8192),
        batch=1, sequence=8192, fused_update=False),
    "mistral7b-6l-train-compiled": dict(
        config=transformers.MistralConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=6,
                                          num_attention_heads=32, num_key_value_heads=8, vocab_size=32768,
                                          sliding_window=None, max_position_embeddings=8192),
        batch=2, sequence=4096, compiled=True),
    "phi3-mini-4l-train": dict(
        config=transformers.Phi3Config(hidden_size=3072, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=32,
                                       num_key_value_heads=32, vocab_size=32064, max_position_embeddings=4096, pad_token_id=0,
                                       resid_pdrop=0, embd_pdrop=0),
        batch=2, sequence=4096),
}


def sized(family, hidden, inner, layers, heads, vocabulary, **others):
    return getattr(transformers, family + "Config")(hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                                                    num_attention_heads=heads, vocab_size=vocabulary, **others)


no_dropout = dict(resid_pdrop=0, embd_pdrop=0)
further = {
    "neox-7b-4l-train": sized("GPTNeoX", 4096, 16384, 4, 32, 50432),
    "phi2-6l-train": sized("Phi", 2560, 10240, 6, 32, 51200, **no_dropout),
    "glm4-9b-4l-train": sized("Glm4", 4096, 13696, 4, 32, 151552, num_key_value_heads=2, pad_token_id=0),
    "phi3-medium-3l-train": sized("Phi3", 5120, 17920, 3, 40, 32064, num_key_value_heads=10, pad_token_id=0, **no_dropout),
    "gemma-7b-3l-train": sized("Gemma", 3072, 24576, 3, 16, 256000, num_key_value_heads=16, head_dim=256),
    "gemma2-9b-4l-train": sized("Gemma2", 3584, 14336, 4, 16, 256000, num_key_value_heads=8, head_dim=256),
    "olmo2-7b-4l-train": sized("Olmo2", 4096, 11008, 4, 32, 100352),
    "starcoder2-7b-3l-train": sized("Starcoder2", 4608, 18432, 3, 36, 49152, num_key_value_heads=4, residual_dropout=0,
                                    embedding_dropout=0),
    "opt-7b-4l-train": transformers.OPTConfig(hidden_size=4096, ffn_dim=16384, num_hidden_layers=4, num_attention_heads=32,
                                              word_embed_proj_dim=4096, dropout=0),
    "llama7b-4l-quick-gelu-train": sized("Llama", 4096, 11008, 4, 32, 32000, hidden_act="quick_gelu"),
    "llama7b-4l-gelu-new-train": sized("Llama", 4096, 11008, 4, 32, 32000, hidden_act="gelu_new"),
    "llama7b-4l-relu2-train": sized("Llama", 4096, 11008, 4, 32, 32000, hidden_act="relu2"),
    "cohere-3l-train": sized("Cohere", 4096, 14336, 3, 32, 256000, num_key_value_heads=8),
    "cohere2-4l-train": sized("Cohere2", 4096, 14336, 4, 32, 256000, num_key_value_heads=8),
    "ernie45-3l-train": sized("Ernie4_5", 4096, 14336, 3, 32, 103424, num_key_value_heads=8),
    "gemma3-12b-4l-train": sized("Gemma3Text", 3840, 15360, 4, 16, 262208, num_key_value_heads=8, head_dim=256),
    "granite-8b-3l-train": sized("Granite", 4096, 12800, 3, 32, 49152, num_key_value_heads=8, embedding_multiplier=12.0,
                                 logits_scaling=16.0, residual_multiplier=0.22),
    "nemotron-3l-train": sized("Nemotron", 4096, 16384, 3, 32, 256000, num_key_value_heads=8),
    "olmo3-7b-4l-train": sized("Olmo3", 4096, 11008, 4, 32, 100352),
    "smollm3-3b-6l-train": sized("SmolLM3", 2048, 11008, 6, 16, 128256, num_key_value_heads=4, pad_token_id=0),
    "stablelm-7b-4l-train": sized("StableLm", 4096, 11008, 4, 32, 50304),
    "phi3-mini-4l-train-compiled": sized("Phi3", 3072, 8192, 4, 32, 32064, pad_token_id=0, **no_dropout),
    "neox-7b-4l-train-compiled": sized("GPTNeoX", 4096, 16384, 4, 32, 50432),
    "gemma-7b-3l-train-compiled": sized("Gemma", 3072, 24576, 3, 16, 256000, num_key_value_heads=16, head_dim=256),
}
steps |= {name: dict(config=config, batch=4, sequence=2048, compiled=name.endswith("compiled")) for name, config in further.items()}
steps["gpt2-xl-6l-train-compiled"] = steps["gpt2-xl-6l-train"] | dict(compiled=True)
steps["llama7b-4l-train-accumulate"] = dict(config=sized("Llama", 4096, 11008, 4, 32, 32000), batch=2, sequence=2048,
                                            microbatches=2)

latent = dict(num_key_value_heads=16, q_lora_rank=768, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
              v_head_dim=128, moe_intermediate_size=1024, n_routed_experts=32, num_experts_per_tok=4, n_shared_experts=1,
              first_k_dense_replace=1, n_group=1, topk_group=1)
steps |= {
    "deepseek3-4l-train": dict(config=sized("DeepseekV3", 2048, 8192, 4, 16, 65536, **latent), batch=2, sequence=2048),
    "gemma3-4b-5l-train": dict(config=sized("Gemma3Text", 2560, 10240, 5, 8, 262208, num_key_value_heads=4, head_dim=256),
                               batch=2, sequence=1536),
    "phi4-3l-train": dict(config=sized("Phi3", 5120, 17920, 3, 40, 100352, num_key_value_heads=10, pad_token_id=0,
                                       **no_dropout), batch=1, sequence=4096),
    "granite-2b-8l-train": dict(config=sized("Granite", 2048, 8192, 8, 32, 49155, num_key_value_heads=8,
                                             embedding_multiplier=12.0, logits_scaling=8.0, residual_multiplier=0.22,
                                             attention_multiplier=0.0156), batch=3, sequence=1024),
    "qwen3-06b-12l-train": dict(config=sized("Qwen3", 1024, 3072, 12, 16, 151936, num_key_value_heads=8, head_dim=128,
                                             tie_word_embeddings=True), batch=4, sequence=1024),
    "llama1b-6l-train": dict(config=sized("Llama", 2048, 8192, 6, 32, 128256, num_key_value_heads=8,
                                          tie_word_embeddings=True), batch=2, sequence=1024),
    "mistral-5l-train": dict(config=sized("Mistral", 4096, 12288, 5, 32, 92544, num_key_value_heads=8, sliding_window=None),
                             batch=2, sequence=3072),
    "gptneox-1b-6l-train": dict(config=sized("GPTNeoX", 2048, 8192, 6, 16, 50304), batch=4, sequence=1024),
    "olmo2-1b-6l-train-compiled": dict(config=sized("Olmo2", 2048, 8192, 6, 16, 100352), batch=4, sequence=2048,
                                       compiled=True),
    "qwen25-3b-6l-train-compiled": dict(config=sized("Qwen2", 2048, 11008, 6, 16, 151936, num_key_value_heads=2,
                                                     tie_word_embeddings=True), batch=2, sequence=4096, compiled=True),
    "qwen25-7b-6l-decode-b32": dict(config=sized("Qwen2", 3584, 18944, 6, 28, 152064, num_key_value_heads=4), batch=32,
                                    sequence=2048, serves="decode"),
    "gemma2-2b-8l-decode-b16": dict(config=sized("Gemma2", 2304, 9216, 8, 8, 256000, num_key_value_heads=4, head_dim=256),
                                    batch=16, sequence=1024, serves="decode"),
    "phi4-4l-decode-b24": dict(config=sized("Phi3", 5120, 17920, 4, 40, 100352, num_key_value_heads=10, pad_token_id=0),
                               batch=24, sequence=1536, serves="decode"),
    "mistral-4l-prefill": dict(config=sized("Mistral", 4096, 14336, 4, 32, 32768, num_key_value_heads=8, sliding_window=None),
                               batch=2, sequence=2048, serves="prefill"),
    "qwen3-4b-5l-prefill": dict(config=sized("Qwen3", 2560, 9728, 5, 32, 151936, num_key_value_heads=8, head_dim=128),
                                batch=1, sequence=3000, serves="prefill"),
}


def serving_step_of(config, batch, sequence, serves):
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
    if serves == "prefill":
        prompt = torch.randint(0, config.vocab_size, (batch, sequence), device="cuda")
        return torch.no_grad()(lambda: model(input_ids=prompt, use_cache=True, logits_to_keep=1))
    cache = transformers.StaticCache(config=config, max_cache_len=sequence)
    token = torch.randint(0, config.vocab_size, (batch, 1), device="cuda")
    filled = sequence - 16
    with torch.no_grad():
        model(input_ids=torch.randint(0, config.vocab_size, (batch, filled), device="cuda"), past_key_values=cache,
              logits_to_keep=1)
    places = iter(range(filled, sequence))
    return torch.no_grad()(lambda: model(input_ids=token, past_key_values=cache,
                                         position_ids=torch.full((batch, 1), next(places), device="cuda")))


def step_of(config, batch, sequence, compiled=False, recompute=False, fused_update=True, microbatches=1):
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa").train()
    model.config.use_cache = False
    if recompute:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused_update)
    run = torch.compile(model) if compiled else model
    tokens = torch.randint(0, config.vocab_size, (batch, sequence), device="cuda")

    def step():
        for _ in range(microbatches):
            (run(input_ids=tokens, labels=tokens).loss / microbatches).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def seconds(step, times=6):
    for _ in range(2):
        step()
    taken = []
    for _ in range(times):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) / 1e3)
    return sorted(taken)[times // 2]


def main(folder, names):
    torch.manual_seed(0)
    for name in names or steps:
        serves = "serves" in steps[name]
        step = serving_step_of(**steps[name]) if serves else step_of(**steps[name])
        print(name, seconds(step), flush=True)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as recorded:
            for _ in range(2 if name.find("decode") >= 0 else 1):
                step()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as scratch:
            plain = os.path.join(scratch, "trace.json")
            recorded.export_chrome_trace(plain)
            with open(plain, "rb") as source, gzip.open(os.path.join(folder, f"{name}.kineto.json.gz"), "wb", 9) as target:
                target.write(source.read())
        del step
        torch.cuda.empty_cache()


main(sys.argv[1], sys.argv[2:])
