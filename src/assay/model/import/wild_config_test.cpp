// Configurations as they are found beside published checkpoints: fields of several library versions, quantisation,
// wrappers of multimodal models. Each has the total that its checkpoint has, or its language model's part of it.
#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/model/import/config_import.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

struct WildConfig {
  const char* name;
  std::int64_t total;
  const char* document;
};

constexpr WildConfig wild_configs[] = {
    {"scores divided by the layer's index", 124'439'808, R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12,
      "n_head": 12, "n_positions": 1024, "vocab_size": 50257, "reorder_and_upcast_attn": true,
      "scale_attn_by_inverse_layer_idx": true})"},
    {"a cache allocated in front", 1'124'886'528, R"({"model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24,
      "n_head": 16, "n_inner": 8192, "n_positions": 2048, "vocab_size": 49280, "multi_query": true,
      "attention_softmax_in_fp32": true, "scale_attention_softmax_in_fp32": true, "pre_allocate_kv_cache": true})"},
    {"endless steps of time in a Mamba 2", 7'285'403'648, R"({"architectures": ["Mamba2ForCausalLM"], "bos_token_id": 0,
      "chunk_size": 256, "conv_kernel": 4, "expand": 2, "head_dim": 64, "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 8192, "layer_norm_epsilon": 1e-05, "model_type": "mamba2", "n_groups": 8, "num_heads": 128,
      "num_hidden_layers": 64, "rms_norm": true, "state_size": 128, "tie_word_embeddings": false,
      "time_step_limit": [0.0, Infinity], "time_step_rank": 256, "torch_dtype": "bfloat16", "use_bias": false,
      "use_conv_bias": true, "vocab_size": 32768})"},
    {"rope_scaling of llama 3.1", 8'030'261'248, R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
      "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
      "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
      "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
      "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})"},
    {"rope_parameters and dtype of a newer library", 8'030'261'248, R"({"model_type": "llama", "dtype": "bfloat16",
      "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072, "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "head_dim": 128,
      "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0}})"},
    {"a tied head with head_dim", 1'235'814'400, R"({"model_type": "llama", "head_dim": 64, "hidden_size": 2048,
      "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
      "tie_word_embeddings": true, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"})"},
    {"null heads of keys and rope_scaling", 6'738'415'616, R"({"model_type": "llama", "hidden_size": 4096,
      "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": null,
      "rope_scaling": null, "vocab_size": 32000, "max_position_embeddings": 4096, "max_sequence_length": 2048,
      "pad_token_id": 0, "torch_dtype": "float16"})"},
    {"fp8 of compressed-tensors", 8'030'261'248, R"({"model_type": "llama", "hidden_size": 4096,
      "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "vocab_size": 128256, "quantization_config": {"config_groups": {"group_0": {"input_activations": {"num_bits": 8,
      "type": "float"}, "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}}, "format":
      "float-quantized", "ignore": ["lm_head"], "kv_cache_scheme": null, "quant_method": "compressed-tensors"}})"},
    {"awq", 6'738'415'616, R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32000,
      "quantization_config": {"bits": 4, "group_size": 128, "modules_to_not_convert": null, "quant_method": "awq",
      "version": "gemm", "zero_point": true}, "torch_dtype": "float16"})"},
    {"gptq beside windows that are off", 7'615'616'512, R"({"model_type": "qwen2", "hidden_size": 3584,
      "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
      "vocab_size": 152064, "max_window_layers": 28, "sliding_window": 131072, "use_sliding_window": false,
      "tie_word_embeddings": false, "quantization_config": {"batch_size": 1, "bits": 4, "block_name_to_quantize": null,
      "desc_act": false, "group_size": 128, "quant_method": "gptq", "sym": true}, "torch_dtype": "float16"})"},
    {"a small tied qwen 2.5", 494'032'768, R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
      "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "vocab_size": 151936,
      "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false, "max_window_layers": 21,
      "sliding_window": 32768, "rope_theta": 1000000.0, "torch_dtype": "bfloat16"})"},
    {"the largest qwen 2.5", 72'706'203'648, R"({"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568,
      "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8, "vocab_size": 152064,
      "max_window_layers": 70, "sliding_window": 131072, "use_sliding_window": false, "tie_word_embeddings": false})"},
    {"qwen 3 with null windows", 8'190'735'360, R"({"model_type": "qwen3", "attention_bias": false, "head_dim": 128,
      "hidden_size": 4096, "intermediate_size": 12288, "max_window_layers": 36, "num_attention_heads": 32,
      "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_scaling": null, "sliding_window": null,
      "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936, "torch_dtype": "bfloat16"})"},
    {"qwen 3 with layer_types", 596'049'920, R"({"model_type": "qwen3", "head_dim": 128, "hidden_size": 1024,
      "intermediate_size": 3072, "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
      "tie_word_embeddings": true, "vocab_size": 151936, "dtype": "bfloat16", "layer_types": ["full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention",
      "full_attention", "full_attention", "full_attention"]})"},
    {"experts of qwen 3", 30'532'122'624, R"({"model_type": "qwen3_moe", "attention_bias": false,
      "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "max_window_layers": 48,
      "mlp_only_layers": [], "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
      "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
      "output_router_logits": false, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
      "use_sliding_window": false, "vocab_size": 151936})"},
    {"experts without windows", 46'702'792'704, R"({"model_type": "mixtral", "hidden_size": 4096,
      "intermediate_size": 14336, "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
      "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": false, "router_aux_loss_coef": 0.02,
      "sliding_window": null, "vocab_size": 32000, "torch_dtype": "bfloat16"})"},
    {"latent attention in fp8", 671'026'419'200, R"({"model_type": "deepseek_v3", "architectures":
      ["DeepseekV3ForCausalLM"], "attention_bias": false, "auto_map": {"AutoConfig": "configuration_deepseek.X"},
      "aux_loss_alpha": 0.001, "ep_size": 1, "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432,
      "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
      "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
      "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
      "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {
      "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
      "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
      "original_max_position_embeddings": 4096, "type": "yarn"}, "routed_scaling_factor": 2.5, "scoring_func":
      "sigmoid", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
      "v_head_dim": 128, "vocab_size": 129280})"},
    // That of DeepSeek V3, and in each layer 1536 x 64 x 128 for queries of the index, 7168 x 128 for its keys, a norm
    // with a bias and 7168 x 64 for the weights of its heads.
    {"latent attention over picked keys",
     671'026'419'200 + 61 * (1'536 * 64 * 128 + 7'168 * 128 + 2 * 128 + 7'168 * 64), R"({"model_type": "deepseek_v32",
      "architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3,
      "hidden_size": 7168, "index_head_dim": 128, "index_n_heads": 64, "index_topk": 2048, "intermediate_size": 18432,
      "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
      "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
      "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
      "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "topk_group": 4, "topk_method": "noaux_tc",
      "v_head_dim": 128, "vocab_size": 129280})"},
    {"queries without compression", 15'706'484'224, R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1,
      "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512, "moe_intermediate_size": 1408,
      "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16,
      "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "topk_method": "greedy", "v_head_dim": 128,
      "vocab_size": 102400})"},
    {"a list of layers with experts", 15'706'484'224, R"({"model_type": "deepseek_v2", "hidden_size": 2048,
      "intermediate_size": 10944, "kv_lora_rank": 512, "moe_intermediate_size": 1408, "first_k_dense_replace": 0,
      "moe_layer_freq": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
      "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
      "num_hidden_layers": 27, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "vocab_size": 102400})"},
    {"dense, where numbers of experts are null", 6'910'365'696, R"({"model_type": "deepseek", "hidden_size": 4096,
      "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 30, "num_key_value_heads": 32,
      "n_routed_experts": null, "n_shared_experts": null, "num_experts_per_tok": null, "vocab_size": 102400})"},
    {"mxfp4 of gpt-oss", 116'829'156'672, R"({"model_type": "gpt_oss", "attention_bias": true, "experts_per_token": 4,
      "head_dim": 64, "hidden_size": 2880, "initial_context_length": 4096, "intermediate_size": 2880,
      "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 36, "num_key_value_heads": 8,
      "num_local_experts": 128, "quantization_config": {"modules_to_not_convert": ["model.layers.*.self_attn",
      "lm_head"], "quant_method": "mxfp4"}, "sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false,
      "vocab_size": 201088, "layer_types": null})"},
    {"gemma 2, tied by default", 9'241'705'984, R"({"model_type": "gemma2", "attn_logit_softcapping": 50.0,
      "cache_implementation": "hybrid", "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_size": 3584,
      "intermediate_size": 14336, "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8,
      "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_size": 4096, "vocab_size": 256000})"},
    {"the text of a multimodal gemma 3", 27'009'346'304, R"({"model_type": "gemma3", "architectures":
      ["Gemma3ForConditionalGeneration"], "mm_tokens_per_image": 256, "boi_token_index": 255999, "text_config": {
      "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "model_type": "gemma3_text",
      "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16, "query_pre_attn_scalar": 168,
      "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, "vision_config": {
      "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
      "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}})"},
    {"gemma 3 alone", 999'885'952, R"({"model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152,
      "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
      "rope_local_base_freq": 10000, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144})"},
    {"the text of mistral 3", 23'572'403'200, R"({"model_type": "mistral3", "image_token_index": 10,
      "multimodal_projector_bias": false, "projector_hidden_act": "gelu", "spatial_merge_size": 2, "text_config": {
      "attention_dropout": 0.0, "head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768, "model_type":
      "mistral", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": null,
      "vocab_size": 131072}, "vision_config": {"hidden_size": 1024, "model_type": "pixtral"},
      "vision_feature_layer": -1})"},
    {"the text of llava", 6'738'939'904, R"({"model_type": "llava", "ignore_index": -100, "image_token_index": 32000,
      "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"], "model_type":
      "llama", "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "vocab_size": 32064}, "vision_config": {
      "hidden_size": 1024, "model_type": "clip_vision_model", "num_hidden_layers": 24}, "vocab_size": 32064})"},
    {"the text of qwen 2 vl, not nested", 7'615'616'512, R"({"model_type": "qwen2_vl", "architectures":
      ["Qwen2VLForConditionalGeneration"], "hidden_size": 3584, "intermediate_size": 18944, "max_window_layers": 28,
      "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rope_scaling": {"type": "mrope",
      "mrope_section": [16, 24, 24]}, "sliding_window": 32768, "tie_word_embeddings": false, "use_sliding_window": false,
      "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584}, "vision_start_token_id": 151652,
      "vocab_size": 152064})"},
    {"the text of qwen 2.5 vl, nested", 7'615'616'512, R"({"model_type": "qwen2_5_vl", "text_config": {"model_type":
      "qwen2_5_vl_text", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
      "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": false, "use_sliding_window": false,
      "sliding_window": null, "max_window_layers": 28, "vocab_size": 152064}, "vision_config": {"depth": 32}})"},
    {"the text of qwen 3 vl", 8'190'735'360, R"({"model_type": "qwen3_vl", "text_config": {"model_type":
      "qwen3_vl_text", "attention_bias": false, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288,
      "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_scaling": {"mrope_interleaved":
      true, "mrope_section": [24, 20, 20], "rope_type": "default"}, "vocab_size": 151936}, "tie_word_embeddings": false,
      "vision_config": {"deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_size": 1152}})"},
    {"phi 3 with windows", 3'821'079'552, R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings":
      4096, "resid_pdrop": 0.0, "rope_scaling": null, "sliding_window": 2047, "vocab_size": 32064,
      "embd_pdrop": 0.0, "attention_bias": false, "tie_word_embeddings": false})"},
    {"falcon with one head of keys", 6'921'720'704,
     R"({"model_type": "falcon", "alibi": false, "apply_residual_connection_post_layernorm":
      false, "bias": false, "hidden_size": 4544, "multi_query": true, "new_decoder_architecture": false,
      "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": true, "vocab_size": 65024})"},
    {"bloom as its first library wrote it", 7'069'016'064,
     R"({"model_type": "bloom", "apply_residual_connection_post_layernorm":
      false, "attention_softmax_in_fp32": true, "masked_softmax_fusion": true, "n_embed": 4096, "n_inner": null,
      "n_layer": 30, "num_attention_heads": 32, "offset_alibi": 100, "pretraining_tp": 2, "skip_bias_add": true,
      "skip_bias_add_qkv": false, "slow_but_exact": false, "unk_token_id": 0, "vocab_size": 250880})"},
    {"opt", 125'239'296, R"({"model_type": "opt", "_remove_final_layer_norm": false, "do_layer_norm_before": true,
      "ffn_dim": 3072, "hidden_size": 768, "layerdrop": 0.0, "max_position_embeddings": 2048, "num_attention_heads": 12,
      "num_hidden_layers": 12, "prefix": "</s>", "vocab_size": 50272, "word_embed_proj_dim": 768})"},
    {"gpt-neox", 20'554'567'680, R"({"model_type": "gpt_neox", "attention_probs_dropout_prob": 0, "hidden_size": 6144,
      "intermediate_size": 24576, "max_position_embeddings": 2048, "num_attention_heads": 64, "num_hidden_layers": 44,
      "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false, "use_parallel_residual": true,
      "vocab_size": 50432})"},
    {"gpt-j", 6'050'882'784, R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": null, "n_layer": 28,
      "n_positions": 2048, "rotary": true, "rotary_dim": 64, "scale_attn_weights": true, "summary_type": "cls_index",
      "tie_word_embeddings": false, "vocab_size": 50400, "task_specific_params": {"text-generation": {"max_length": 50}}})"},
    {"mpt with attn_config", 6'649'286'656, R"({"model_type": "mpt", "attn_config": {"alibi": true, "alibi_bias_max": 8,
      "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false,
      "clip_qkv": null, "prefix_lm": false, "qk_ln": false, "softmax_scale": null}, "d_model": 4096, "expansion_ratio": 4,
      "init_config": {"init_std": 0.02}, "max_seq_len": 2048, "n_heads": 32, "n_layers": 32, "no_bias": true,
      "norm_type": "low_precision_layernorm", "vocab_size": 50432})"},
    {"starcoder 2", 3'030'371'328, R"({"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
      "mlp_type": "default", "norm_epsilon": 1e-05, "norm_type": "layer_norm", "num_attention_heads": 24,
      "num_hidden_layers": 30, "num_key_value_heads": 2, "sliding_window": 4096, "use_bias": true, "vocab_size": 49152})"},
    {"t5 with parameters of tasks", 60'506'624, R"({"model_type": "t5", "d_ff": 2048, "d_kv": 64, "d_model": 512,
      "decoder_start_token_id": 0, "dropout_rate": 0.1, "is_encoder_decoder": true, "n_positions": 512, "num_heads": 8,
      "num_layers": 6, "output_past": true, "relative_attention_num_buckets": 32, "task_specific_params": {
      "summarization": {"num_beams": 4}}, "vocab_size": 32128})"},
    {"heads of keys for each layer", 7'043'551'232, R"({"model_type": "deci", "architectures": ["DeciLMForCausalLM"],
      "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
      "num_key_value_heads_per_layer": [4, 4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1], "rope_scaling": {"factor": 2.0, "type": "dynamic"}, "vocab_size": 32000})"},
    {"qwen 1, gate and up in one width", 7'721'324'544, R"({"model_type": "qwen", "architectures": ["QWenLMHeadModel"],
      "bf16": false, "emb_dropout_prob": 0.0, "hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128,
      "layer_norm_epsilon": 1e-06, "max_position_embeddings": 32768, "no_bias": true, "num_attention_heads": 32,
      "num_hidden_layers": 32, "onnx_safe": null, "rotary_emb_base": 10000, "rotary_pct": 1.0, "seq_length": 8192,
      "tie_word_embeddings": false, "use_dynamic_ntk": true, "use_logn_attn": true, "vocab_size": 151936})"},
    {"phi 3 small", 7'392'272'384, R"({"model_type": "phi3small", "attention_bias": false, "blocksparse_block_size": 64,
      "blocksparse_homo_head_pattern": false, "blocksparse_num_local_blocks": 16, "blocksparse_vert_stride": 8,
      "dense_attention_every_n_layers": 2, "ff_dim_multiplier": null, "ff_intermediate_size": 14336, "hidden_act": "gegelu",
      "hidden_size": 4096, "max_position_embeddings": 8192, "mup_width_multiplier": 8.0, "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "pad_sequence_to_multiple_of_64": true, "vocab_size": 100352})"},
    {"phi 2 before the library knew it", 2'779'683'840,
     R"({"model_type": "phi-msft", "architectures": ["PhiForCausalLM"],
      "activation_function": "gelu_new", "attn_pdrop": 0.0, "flash_rotary": false, "layer_norm_epsilon": 1e-05,
      "n_embd": 2560, "n_head": 32, "n_head_kv": null, "n_inner": null, "n_layer": 32, "n_positions": 2048,
      "rotary_dim": 32, "tie_word_embeddings": false, "vocab_size": 51200})"},
    {"olmo before the library knew it", 6'888'095'744,
     R"({"model_type": "hf_olmo", "architectures": ["OLMoForCausalLM"],
      "activation_type": "swiglu", "alibi": false, "attention_layer_norm": false, "bias_for_layer_norm": false,
      "block_group_size": 1, "block_type": "sequential", "clip_qkv": null, "d_model": 4096, "embedding_size": 50304,
      "flash_attention": true, "include_bias": false, "layer_norm_type": "default", "layer_norm_with_affine": false,
      "max_sequence_length": 2048, "mlp_hidden_size": 22016, "mlp_ratio": 4, "multi_query_attention": false,
      "n_heads": 32, "n_layers": 32, "rope": true, "scale_logits": false, "vocab_size": 50280, "weight_tying": false})"},
    {"falcon 40b before the library knew it", 41'303'293'952, R"({"model_type": "RefinedWeb", "architectures":
      ["RWForCausalLM"], "alibi": false, "bias": false, "hidden_size": 8192, "n_head": 128, "n_head_kv": 8,
      "n_layer": 60, "parallel_attn": true, "vocab_size": 65024})"},
    {"falcon 2", 11'102'822'400, R"({"model_type": "falcon", "activation": "gelu", "alibi": false, "bias": false,
      "ff_factor": 4, "ffn_hidden_size": 16384, "hidden_size": 4096, "max_position_embeddings": 8192, "multi_query": true,
      "new_decoder_architecture": true, "num_attention_heads": 32, "num_hidden_layers": 60, "num_kv_heads": 8,
      "num_ln_in_parallel_attn": 1, "parallel_attn": true, "tie_word_embeddings": false, "vocab_size": 65024})"},
    {"glm 4 as its own code writes it", 9'399'951'360, R"({"model_type": "chatglm", "architectures": ["ChatGLMModel"],
      "add_bias_linear": false, "add_qkv_bias": true, "apply_query_key_layer_scaling": true,
      "apply_residual_connection_post_layernorm": false, "attention_softmax_in_fp32": true, "ffn_hidden_size": 13696,
      "fp32_residual_connection": false, "hidden_size": 4096, "kv_channels": 128, "layernorm_epsilon": 1.5625e-07,
      "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 40,
      "original_rope": true, "padded_vocab_size": 151552, "post_layer_norm": true, "rmsnorm": true, "rope_ratio": 500,
      "seq_length": 131072, "tie_word_embeddings": false, "vocab_size": 151552})"},
    {"baichuan 2", 7'505'973'248, R"({"model_type": "baichuan", "architectures": ["BaichuanForCausalLM"],
      "_from_model_config": true, "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096,
      "model_max_length": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 125696})"},
    {"exaone 3", 7'818'448'896, R"({"model_type": "exaone", "activation_function": "silu", "embed_dropout": 0.0,
      "head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 4096,
      "num_attention_heads": 32, "num_key_value_heads": 8, "num_layers": 32, "tie_word_embeddings": false,
      "vocab_size": 102400})"},
    {"ernie 4.5 with experts", 21'825'437'888, R"({"model_type": "ernie4_5_moe", "hidden_size": 2560,
      "intermediate_size": 12288, "max_position_embeddings": 131072, "moe_capacity": [64, 64, 64], "moe_gate": "topk",
      "moe_intermediate_size": 1536, "moe_k": 6, "moe_layer_end_index": 27, "moe_layer_interval": 1,
      "moe_layer_start_index": 1, "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_use_aux_free": true,
      "num_attention_heads": 20, "num_hidden_layers": 28, "num_key_value_heads": 4, "num_nextn_predict_layers": 1,
      "tie_word_embeddings": true, "use_bias": false, "vocab_size": 103424})"},
    {"ling", 16'801'974'272, R"({"model_type": "bailing_moe", "first_k_dense_replace": 0, "head_dim": 128,
      "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 16384, "moe_intermediate_size": 1408,
      "multi_gate": false, "norm_head": false, "norm_softmax": false, "norm_topk_prob": true, "num_attention_heads": 16,
      "num_experts": 64, "num_experts_per_tok": 6, "num_hidden_layers": 28, "num_key_value_heads": 4,
      "num_shared_experts": 2, "tie_word_embeddings": false, "use_bias": false, "use_qkv_bias": false,
      "vocab_size": 126464})"},
    {"dots, a glm with norms of each head", 142'774'381'696, R"({"model_type": "dots1", "attention_bias": false,
      "first_k_dense_replace": 1, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 10944,
      "max_position_embeddings": 32768, "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 128,
      "n_shared_experts": 2, "num_attention_heads": 32, "num_experts_per_tok": 6, "num_hidden_layers": 62,
      "num_key_value_heads": 32, "topk_group": 1, "vocab_size": 152064})"},
    {"hunyuan with lists for its layers", 80'393'183'232, R"({"model_type": "hunyuan_v1_moe", "attention_bias": false,
      "attention_head_dim": 128, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 3072,
      "max_position_embeddings": 32768, "mlp_bias": false, "moe_intermediate_size": [3072, 3072], "moe_topk": [8, 8],
      "num_attention_heads": 32, "num_experts": 64, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "num_shared_expert": [1, 1], "tie_word_embeddings": true, "use_cla": false, "use_qk_norm": true,
      "vocab_size": 128167})"},
    // 2 x 1000 x 512 of embedding and head: nothing says that they are one.
    {"hunyuan, dense, that says nothing of its head", 5'745'664, R"({"model_type": "hunyuan_v1_dense", "head_dim": 128,
      "hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 4, "num_hidden_layers": 2,
      "num_key_value_heads": 2, "use_qk_norm": true, "vocab_size": 1000})"},
    {"granite 4, state spaces and experts", 32'207'337'984,
     R"({"model_type": "granitemoehybrid", "attention_bias": false,
      "attention_multiplier": 0.0078125, "embedding_multiplier": 12, "hidden_size": 4096, "intermediate_size": 768,
      "layer_types": ["mamba", "mamba", "mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba", "mamba",
      "mamba", "mamba", "mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba",
      "mamba", "mamba", "mamba", "attention", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "mamba",
      "mamba", "attention", "mamba", "mamba", "mamba", "mamba"], "logits_scaling": 16, "mamba_chunk_size": 256,
      "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2,
      "mamba_n_groups": 1, "mamba_n_heads": 128, "mamba_proj_bias": false, "max_position_embeddings": 131072,
      "num_attention_heads": 32, "num_experts_per_tok": 10, "num_hidden_layers": 40, "num_key_value_heads": 8,
      "num_local_experts": 72, "position_embedding_type": "nope", "shared_intermediate_size": 1536,
      "tie_word_embeddings": true, "vocab_size": 100352})"},
    {"mamba as its authors write it", 2'768'345'600, R"({"d_model": 2560, "n_layer": 64, "vocab_size": 50277,
      "ssm_cfg": {}, "rms_norm": true, "residual_in_fp32": true, "fused_add_norm": true, "pad_vocab_size_multiple": 8})"},
    {"minimax m2 under the type of another family", 228'689'764'864, R"({"model_type": "minimax", "architectures":
      ["MiniMaxM2ForCausalLM"], "attn_type_list": [1, 1, 1], "attn_window_size": null, "head_dim": 128,
      "hidden_size": 3072, "intermediate_size": 1536, "max_position_embeddings": 196608, "mlp_intermediate_size": 8192,
      "mtp_transformer_layers": 1, "num_attention_heads": 48, "num_experts_per_tok": 8, "num_hidden_layers": 62,
      "num_key_value_heads": 8, "num_local_experts": 256, "num_mtp_modules": 3, "qk_norm_type": "per_layer",
      "rotary_dim": 64, "shared_intermediate_size": 0, "sliding_window": null, "use_mtp": true, "use_qk_norm": true,
      "use_routing_bias": true, "vocab_size": 200064})"},
    {"command r7b with what its own code reads", 8'028'033'024, R"({"model_type": "cohere2", "attention_bias": false,
      "cache_implementation": "hybrid", "head_dim": 128, "hidden_size": 4096, "intermediate_size": 14336,
      "layer_switch": 4, "logit_scale": 0.25, "max_position_embeddings": 8192, "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "order_of_interleaved_layers": "local_attn_first",
      "sliding_window": 4096, "sliding_window_pattern": 4, "use_embedding_sharing": true, "use_gated_activation": true,
      "use_parallel_block": true, "use_parallel_embedding": true, "vocab_size": 256000})"},
    {"minicpm with its scales", 2'724'880'896, R"({"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"],
      "hidden_act": "silu", "hidden_size": 2304, "intermediate_size": 5760, "num_attention_heads": 36,
      "num_hidden_layers": 40, "num_key_value_heads": 36, "vocab_size": 122753, "scale_emb": 12,
      "dim_model_base": 256, "scale_depth": 1.4, "max_position_embeddings": 4096, "rope_scaling": null})"},
    // By hand: a tied table and a norm; compressed queries and keys, values of 2560 / 40 = 64, a gated block, two
    // norms.
    {"minicpm 3, whose values have no width of their own",
     73'448 * 2'560 + 2'560 +
         62LL * (2'560 * 768 + 768 + 768 * 40 * 96 + 2'560 * 288 + 256 + 256 * 40 * 128 + 40 * 64 * 2'560 +
                 3 * 2'560 * 6'400 + 2 * 2'560),
     R"({"model_type": "minicpm3", "hidden_size": 2560, "intermediate_size": 6400, "num_hidden_layers": 62,
      "num_attention_heads": 40, "num_key_value_heads": 40, "vocab_size": 73448, "scale_emb": 12,
      "dim_model_base": 256, "scale_depth": 1.4, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "q_lora_rank": 768,
      "kv_lora_rank": 256, "max_position_embeddings": 32768})"},
    // By hand: 270 billion as announced; a dense block of 32768 beside 8 experts of 16384, a router, four norms.
    {"grok 2, a dense block beside the experts",
     2LL * 131'072 * 8'192 + 8'192 +
         64LL * (2 * 8'192 * 8'192 + 2 * 8'192 * 1'024 + 8LL * 3 * 8'192 * 16'384 + 3 * 8'192 * 32'768 + 8 * 8'192 +
                 4 * 8'192),
     R"({"model_type": "git", "architectures": ["Grok1ForCausalLM"], "attn_logit_softcapping": 30.0,
      "embedding_multiplier_scale": 90.5, "head_dim": 128, "hidden_size": 8192, "intermediate_size": 32768,
      "moe_intermediate_size": 16384, "num_attention_heads": 64, "num_experts_per_tok": 2, "num_hidden_layers": 64,
      "num_key_value_heads": 8, "num_local_experts": 8, "residual_moe": true, "router_logit_softcapping": 30.0,
      "max_position_embeddings": 131072, "tie_word_embeddings": false, "vocab_size": 131072})"},
    // By hand: two tables, one matrix up, two norms a layer.
    {"arcee without a gate",
     2LL * 128'004 * 2'560 + 2'560 + 36LL * (2 * 2'560 * 2'560 + 2 * 2'560 * 512 + 2 * 2'560 * 18'432 + 2 * 2'560),
     R"({"model_type": "arcee", "hidden_act": "relu2", "hidden_size": 2560, "intermediate_size": 18432,
      "head_dim": 128, "num_attention_heads": 20, "num_hidden_layers": 36, "num_key_value_heads": 4,
      "mlp_bias": false, "attention_bias": false, "tie_word_embeddings": false, "vocab_size": 128004})"},
    // By hand: biases of all products, LayerNorms with biases, those of queries and keys over 64.
    {"persimmon with norms of queries and keys",
     2LL * 262'144 * 4'096 + 2 * 4'096 +
         36LL * (4 * 4'096 * 4'096 + 4 * 4'096 + 2 * 4'096 * 16'384 + 16'384 + 4'096 + 4 * 4'096 + 4 * 64),
     R"({"model_type": "persimmon", "hidden_act": "relu2", "hidden_size": 4096, "intermediate_size": 16384,
      "num_attention_heads": 64, "num_hidden_layers": 36, "partial_rotary_factor": 0.5, "qk_layernorm": true,
      "tie_word_embeddings": false, "vocab_size": 262144, "max_position_embeddings": 16384})"},
    // By hand: as GPT-J, with another depth and table.
    {"codegen, a gpt-j",
     2LL * 51'200 * 4'096 + 51'200 + 2 * 4'096 + 33LL * (12 * 4'096 * 4'096 + 5 * 4'096 + 2 * 4'096),
     R"({"model_type": "codegen", "architectures": ["CodeGenForCausalLM"], "activation_function": "gelu_new",
      "n_ctx": 2048, "n_embd": 4096, "n_head": 16, "n_inner": null, "n_layer": 33, "n_positions": 2048,
      "rotary_dim": 64, "tie_word_embeddings": false, "vocab_size": 51200})"},
    // By hand: 2 tables of 1000 x 1024 and a norm of 1024; the first layer has 4 key heads of 64 and a width of
    // floor(2 x 2.625 x 1024 / 3) = 1792, the second no attention and floor(2 x 1.3125 x 1024 / 3) = 896 -> 1024.
    {"layers that a search left",
     2'049'024 + 1'024 + 1'024 * (2 * 1'024 + 2 * 256 + 3 * 1'792) + 1'024 + 1'024 * 3 * 1'024 + 1'024,
     R"({"model_type": "nemotron-nas", "architectures": ["DeciLMForCausalLM"],
      "attention_bias": false, "block_configs": [{"attention": {"n_heads_in_group": 4, "no_op": false,
      "num_sink_tokens": null, "replace_with_linear": false, "window_length": null}, "ffn": {"ffn_mult": 2.625,
      "no_op": false, "replace_with_linear": false, "sparsify": null}}, {"attention": {"n_heads_in_group": null,
      "no_op": true, "replace_with_linear": false}, "ffn": {"ffn_mult": 1.3125, "no_op": false}}],
      "hidden_size": 1024, "intermediate_size": null, "num_attention_heads": 16, "num_hidden_layers": 2,
      "num_key_value_heads": null, "vocab_size": 1000})"},
};

TEST(WildConfig, EachHasTheTotalOfItsCheckpoint) {
  for (const WildConfig& config : wild_configs) {
    const auto imported = import_config(config.document, "config.json", catalogue());
    ASSERT_TRUE(imported) << config.name << ": " << imported.error().where << ": " << imported.error().what;
    EXPECT_EQ(parameter_counts(imported->model).total, config.total) << config.name;
  }
}

TEST(WildConfig, AWrapperSaysWhatIsLeftOut) {
  for (const WildConfig& config : wild_configs) {
    const auto imported = import_config(config.document, "config.json", catalogue());
    ASSERT_TRUE(imported);
    const bool wrapped = std::string_view(config.document).find("vision_config") != std::string_view::npos;
    const bool said = !imported->notes.empty() && imported->notes[0].find("vision_config") != std::string::npos;
    EXPECT_EQ(wrapped, said) << config.name;
  }
}

}  // namespace
}  // namespace assay::model
