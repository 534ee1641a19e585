"""Tiny checkpoints by the transformers library, with what it computes greedily: python3 checkpoints.py FOLDER"""
import json, os, sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
out = sys.argv[1]
B = dict(vocab_size=64, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=128, bos_token_id=1, eos_token_id=None, pad_token_id=0)
R = lambda t, **k: dict(rope_parameters=dict(rope_type=k.pop("rope_type", "default"), rope_theta=t, **k))
P = lambda x: R(1e4, partial_rotary_factor=x)
W = dict(hidden_size=32, head_dim=None)
L3 = R(5e5, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
M = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, decoder_sparse_step=1)
F = {
 "llama": R(5e5), "llama31": dict(model_type="llama", tie_word_embeddings=True, **L3),
 "qwen2": dict(tie_word_embeddings=True, rms_norm_eps=1e-4, **R(1e6)), "qwen3": R(1e6),
 "mistral": dict(sliding_window=5, **R(1e4)), "mixtral": dict(num_local_experts=4, num_experts_per_tok=2, **R(1e6)),
 "gemma": {}, "gemma2": dict(query_pre_attn_scalar=16, sliding_window=5, attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
 "gemma3_text": dict(query_pre_attn_scalar=16, sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
 "phi3": W | R(1e4), "phi": W | P(.5), "gpt_neox": W | P(.25), "gpt_neox_serial": W | dict(model_type="gpt_neox", use_parallel_residual=False, **P(.5)),
 "olmo": dict(head_dim=None), "olmo2": R(5e5), "qwen3_moe": M | dict(norm_topk_prob=True), "olmoe": W | dict(num_experts=4, num_experts_per_tok=2, norm_topk_prob=False),
 "qwen2_moe": M | dict(shared_expert_intermediate_size=16, norm_topk_prob=False), "gpt2": {}, "starcoder2": {}, "stablelm": W | dict(use_qkv_bias=True, **P(.25)),
 "granite": dict(embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.5, logits_scaling=2.0), "cohere": dict(head_dim=None, logit_scale=0.25), "glm4": dict(partial_rotary_factor=0.5), "smollm3": dict(no_rope_layers=[1, 0]),
 "yarn": dict(model_type="qwen2", **R(1e4, rope_type="yarn", factor=4.0, original_max_position_embeddings=16)), "linear": dict(model_type="llama", **R(1e4, rope_type="linear", factor=4.0)),
 "phi3_long": W | dict(model_type="phi3", original_max_position_embeddings=64, **R(1e4, rope_type="longrope", short_factor=[1.1, 1.2, 1.5, 2.0], long_factor=[2.0, 3.0, 4.0, 8.0]))}
for i, (name, own) in enumerate(F.items()):
  torch.manual_seed(i)
  k = {a: b for a, b in (B | own).items() if b is not None or a == "eos_token_id"}
  t = k.pop("model_type", name)
  if t == "gpt2": k = dict(vocab_size=64, n_embd=24, n_layer=2, n_head=4, n_positions=64, n_inner=20, bos_token_id=1, eos_token_id=None)
  if t == "gpt_neox": k.pop("num_key_value_heads")
  m = AutoModelForCausalLM.from_config(AutoConfig.for_model(t, **k))
  with torch.no_grad():
    for n, p in m.named_parameters():
      norm = ("norm" in n or "ln_" in n) and not n.endswith("bias") and not t.startswith("gemma")
      p.copy_(torch.randn(p.shape) * (0.2 if p.dim() == 1 else 0.4) + norm)
  m.to([torch.float32, torch.bfloat16, torch.float16][i % 3]).save_pretrained(f"{out}/{name}", max_shard_size="15KB" if i % 4 == 1 else "5GB")
  # products of experts have no kernel in fp64
  m = AutoModelForCausalLM.from_pretrained(f"{out}/{name}", dtype=torch.float32 if "mo" in t or t == "mixtral" else torch.float64, attn_implementation="eager").eval()
  ids = (torch.arange(12) * 7 + i).remainder(62).add(1).tolist()
  prompt, rows = list(ids), []
  with torch.no_grad():
    for _ in range(6):
      y = m(torch.tensor([ids])).logits[0, -1]
      rows.append([round(v, 7) for v in y.tolist()])
      ids.append(int(y.argmax()))
  json.dump(dict(prompt=prompt, tokens=ids[len(prompt):], logits=rows), open(f"{out}/{name}/expected.json", "w"))
  if os.path.exists(f"{out}/{name}/generation_config.json"): os.remove(f"{out}/{name}/generation_config.json")
  print(name, m.dtype)
