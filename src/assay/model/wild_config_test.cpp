// Configurations as they are found beside published checkpoints: fields of several library versions, quantisation,
// wrappers of multimodal models. Each has the total that its checkpoint has, or its language model's part of it.
#include <gtest/gtest.h>

#include "assay/model/accounting.h"
#include "assay/model/config_import.h"

namespace assay {
namespace {

struct Wild {
  const char* name;
  std::int64_t total;
  const char* document;
};

constexpr Wild wild[] = {
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
};

TEST(WildConfig, EachHasTheTotalOfItsCheckpoint) {
  for (const Wild& config : wild) {
    const auto imported = import_config(config.document, "config.json");
    ASSERT_TRUE(imported) << config.name << ": " << imported.error().where << ": " << imported.error().what;
    EXPECT_EQ(parameter_counts(imported->model).total, config.total) << config.name;
  }
}

TEST(WildConfig, AWrapperSaysWhatIsLeftOut) {
  for (const Wild& config : wild) {
    const auto imported = import_config(config.document, "config.json");
    ASSERT_TRUE(imported);
    const bool wrapped = std::string_view(config.document).find("vision_config") != std::string_view::npos;
    const bool said = !imported->notes.empty() && imported->notes[0].find("vision_config") != std::string::npos;
    EXPECT_EQ(wrapped, said) << config.name;
  }
}

}  // namespace
}  // namespace assay
