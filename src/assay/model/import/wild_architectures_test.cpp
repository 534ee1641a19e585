// Configurations of architectures that have a turn of their own, as they are found beside published checkpoints: total,
// what a token passes, what it leaves in the cache and what a sequence keeps as a state.
#include <gtest/gtest.h>

#include <optional>

#include "assay/model/accounting.h"
#include "assay/model/import/config_import.h"
#include "assay/testing/catalogue.h"

namespace assay::model {
namespace {

using testing::catalogue;

struct Wild {
  const char* name;
  std::int64_t total;
  std::int64_t matrix;     ///< elements that a token is multiplied with
  std::int64_t kv, state;  ///< values per token, and per sequence
  const char* document;
};

constexpr Wild wild[] = {
    // The checkpoint has 10,670,220,835, of which 863,567,379 are the vision tower and 7680 x 4096 + 4096 its
    // projector.
    // A text passes the 32 layers of Llama 3.1 8B.
    {"the text of llama 3.2 vision", 10'670'220'835 - 863'567'379 - 31'461'376, 7'504'658'432, 32 * 2 * 1'024, 0,
     R"({"model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "image_token_index": 128256,
      "text_config": {"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
      "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "max_position_embeddings": 131072,
      "tie_word_embeddings": false, "num_beams": 1}, "vision_config": {"hidden_size": 1280}})"},
    // The checkpoints of E2B and E4B have 5,439,438,272 and 7,849,978,192, whose towers are the same: 983,281,504.
    {"the text of gemma 3n E2B", 5'439'438'272 - 983'281'504, 2'421'410'144, 20 * 2 * 512, 0,
     R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text", "hidden_size": 2048,
      "hidden_size_per_layer_input": 256, "intermediate_size": 8192, "num_hidden_layers": 30, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262400, "vocab_size_per_layer_input": 262144,
      "altup_num_inputs": 4, "altup_active_idx": 0, "altup_coef_clip": 120.0, "altup_correct_scale": true,
      "laurel_rank": 64, "num_kv_shared_layers": 10, "sliding_window": 512, "final_logit_softcapping": 30.0,
      "rope_local_base_freq": 10000.0}, "vision_config": {"hidden_size": 2048}, "audio_config": {}})"},
    {"the text of gemma 3n E4B, which is the default", 7'849'978'192 - 983'281'504, 4'485'835'504, 20 * 2 * 512, 0,
     R"({"model_type": "gemma3n_text", "intermediate_size": [16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384,
      16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384,
      16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384, 16384]})"},
    {"lfm2 with numbers of layers that attend", 1'170'340'608, 1'170'210'816, 6 * 2 * 512, 10 * 2'048 * 2,
     R"({"model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "block_auto_adjust_ff_dim": true,
      "block_dim": 2048, "block_ff_dim": 12288, "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0,
      "block_multiple_of": 256, "block_norm_eps": 1e-05, "block_use_swiglu": true, "block_use_xavier_init": true,
      "conv_L_cache": 3, "conv_bias": false, "conv_dim": 2048, "conv_dim_out": 2048, "conv_use_xavier_init": true,
      "full_attn_idxs": [2, 5, 8, 10, 12, 14], "hidden_size": 2048, "max_position_embeddings": 128000,
      "num_attention_heads": 32, "num_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
      "use_pos_enc": true, "vocab_size": 65536})"},
    {"lfm2 with experts and types of layers", 8'339'929'856, 1'557'528'576, 6 * 2 * 512, 18 * 2'048 * 2,
     R"({"model_type": "lfm2_moe", "conv_L_cache": 3, "conv_bias": false, "hidden_size": 2048,
      "intermediate_size": 7168, "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "conv",
      "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv",
      "conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv"],
      "moe_intermediate_size": 1792, "norm_topk_prob": true, "num_attention_heads": 32, "num_dense_layers": 2,
      "num_experts": 32, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
      "routed_scaling_factor": 1.0, "use_expert_bias": true, "vocab_size": 65536})"},
    // A cell for each channel, and three past inputs of the convolution.
    {"recurrentgemma", 2'682'862'080, 2'681'733'120, 8 * 2 * 256, 18 * 2'560 * (1 + 3),
     R"({"model_type": "recurrent_gemma", "architectures": ["RecurrentGemmaForCausalLM"], "attention_bias": false,
      "attention_window_size": 2048, "block_types": ["recurrent", "recurrent", "attention"], "conv1d_width": 4,
      "embeddings_scale_by_sqrt_dim": true, "final_w_init_variance_scale": 0.0769, "head_dim": 256,
      "hidden_size": 2560, "intermediate_size": 15360, "logits_soft_cap": 30.0, "lru_width": 2560,
      "num_attention_heads": 10, "num_hidden_layers": 26, "num_key_value_heads": 1, "partial_rotary_factor": 0.5,
      "vocab_size": 256000, "w_init_variance_scale": 0.01})"},
    {"kimi linear", 49'122'681'728, 3'105'767'424, 7 * 576, 20 * (4'096 * 128 + 3 * 4'096 * 3),
     R"({"model_type": "kimi_linear", "first_k_dense_replace": 1, "head_dim": 72, "hidden_size": 2304,
      "intermediate_size": 9216, "kv_lora_rank": 512, "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24,
      27], "head_dim": 128, "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
      "num_heads": 32, "short_conv_kernel_size": 4}, "mla_use_nope": true, "model_max_length": 1048576,
      "moe_intermediate_size": 1024, "moe_layer_freq": 1, "moe_renormalize": true, "num_attention_heads": 32,
      "num_expert_group": 1, "num_experts": 256, "num_experts_per_token": 8, "num_hidden_layers": 27,
      "num_key_value_heads": 32, "num_nextn_predict_layers": 0, "num_shared_experts": 1, "q_lora_rank": null,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "tie_word_embeddings": false, "topk_group": 1,
      "use_grouped_topk": true, "v_head_dim": 128, "vocab_size": 163840})"},
    {"apertus", 8'053'338'176, 7'516'192'768, 32 * 2 * 1'024, 0,
     R"({"model_type": "apertus", "attention_bias": false, "hidden_act": "xielu", "hidden_size": 4096,
      "intermediate_size": 21504, "max_position_embeddings": 65536, "mlp_bias": false, "num_attention_heads": 32,
      "num_hidden_layers": 32, "num_key_value_heads": 8, "post_norm": false, "qk_norm": true,
      "tie_word_embeddings": false, "vocab_size": 131072})"},
    // The checkpoint has 561,862,880,256, of which 1,197,899,776 predict a further token, with a table of their own.
    {"longcat", 561'862'880'256 - 1'197'899'776, 27'148'681'216, 56 * 576, 0,
     R"({"model_type": "longcat_flash", "attention_bias": false, "attention_method": "MLA", "vocab_size": 131072,
      "hidden_size": 6144, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "num_layers": 28,
      "num_attention_heads": 64, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "qk_nope_head_dim": 128, "mla_scale_q_lora": true, "mla_scale_kv_lora": true, "n_routed_experts": 512,
      "moe_topk": 12, "zero_expert_num": 256, "zero_expert_type": "identity", "router_bias": false})"},
    // By hand: 128 experts of 4864 and a dense block of 7168 in each layer, three norms.
    {"arctic",
     2LL * 32'000 * 7'168 + 7'168 +
         35LL * (2 * 7'168 * 7'168 + 2 * 7'168 * 1'024 + 128LL * 3 * 7'168 * 4'864 + 3 * 7'168 * 7'168 + 128 * 7'168 +
                 3 * 7'168),
     17'088'512'000, 35 * 2 * 1'024, 0,
     R"({"model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
      "num_attention_heads": 56, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 128,
      "num_experts_per_tok": 2, "parallel_attn_mlp_res": true, "moe_layer_frequency": 1, "moe_min_capacity": 0,
      "moe_token_dropping": false, "use_residual": true, "enable_expert_tensor_parallelism": false,
      "max_position_embeddings": 4096, "tie_word_embeddings": false})"},
    {"phi 4 for images and sound, without either", 3'836'021'760, 3'835'822'080, 32 * 2 * 1'024, 0,
     R"({"model_type": "phi4mm", "architectures": ["Phi4MMForCausalLM"], "hidden_size": 3072,
      "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8,
      "vocab_size": 200064, "tie_word_embeddings": true, "max_position_embeddings": 131072, "sliding_window": 262144,
      "embd_layer": {"embedding_cls": "image_audio"}, "vision_lora": {"r": 256}, "speech_lora": {"r": 320},
      "lm_head_bias": false, "mlp_bias": false, "full_attn_mod": 1})"},
    {"openelm, whose layers grow", 271'527'168, 271'482'880, 2 * 64 * 63, 0,
     R"({"model_type": "openelm", "ffn_dim_divisor": 256, "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9,
      2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0], "ffn_with_glu": true, "head_dim": 64,
      "max_context_length": 2048, "model_dim": 1280, "normalize_qk_projections": true, "num_gqa_groups": 4,
      "num_kv_heads": [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5], "num_query_heads": [12, 12, 12, 12, 12, 16, 16,
      16, 16, 16, 16, 16, 20, 20, 20, 20], "num_transformer_layers": 16, "qkv_multipliers": [0.5, 1.0],
      "share_input_output_layers": true, "vocab_size": 32000})"},
    {"vaultgemma", 1'038'741'120, 1'038'680'064, 26 * 2 * 1'024, 0,
     R"({"model_type": "vaultgemma", "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
      "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
      "sliding_window": 512, "query_pre_attn_scalar": 256})"},
    // By hand: two tables and matrices alone.
    {"nanochat, whose norms learn nothing", 560'988'160, 560'988'160 - 65'536 * 1'280, 20 * 2 * 1'280, 0,
     R"({"model_type": "nanochat", "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 20,
      "num_attention_heads": 10, "num_key_value_heads": 10, "vocab_size": 65536, "final_logit_softcapping": 15.0})"},
    {"gpt 1", 116'534'784, 116'534'784 - 512 * 768 - 12 * (13 * 768), 12 * 2 * 768, 0,
     R"({"model_type": "openai-gpt", "afn": "gelu", "n_ctx": 512, "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 512, "n_special": 0, "predict_special_tokens": true, "vocab_size": 40478})"},
    {"stablelm 2 as its own code writes it", 1'644'515'328, 1'438'646'272, 24 * 2 * 2'048, 0,
     R"({"model_type": "stablelm_epoch", "architectures": ["StableLMEpochForCausalLM"], "hidden_size": 2048,
      "intermediate_size": 5632, "norm_eps": 1e-05, "num_attention_heads": 32, "num_heads": 32, "num_hidden_layers": 24,
      "num_key_value_heads": 32, "rope_pct": 0.25, "rotary_scaling_factor": 1.0, "use_qkv_bias": true,
      "tie_word_embeddings": false, "vocab_size": 100352})"},
    {"llava as its own code writes it", 6'738'415'616, 6'738'415'616 - 32'000 * 4'096 - 65 * 4'096, 32 * 2 * 4'096, 0,
     R"({"model_type": "llava", "architectures": ["LlavaLlamaForCausalLM"], "hidden_size": 4096,
      "intermediate_size": 11008, "mm_hidden_size": 1024, "mm_vision_select_layer": -2, "mm_use_im_patch_token": false,
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "vocab_size": 32000,
      "use_mm_proj": true, "tie_word_embeddings": false})"},
    {"xglm", 564'463'616, 564'142'080, 24 * 2 * 1'024, 0,
     R"({"model_type": "xglm", "attention_heads": 16, "d_model": 1024, "ffn_dim": 4096, "layerdrop": 0.0,
      "num_layers": 24, "max_position_embeddings": 2048, "vocab_size": 256008})"},
    {"biogpt", 346'763'264, 345'391'104, 24 * 2 * 1'024, 0,
     R"({"model_type": "biogpt", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
      "num_hidden_layers": 24, "vocab_size": 42384, "max_position_embeddings": 1024})"},
    {"mbart 50", 610'879'488, 608'376'832, 12 * 2 * 1'024, 0,
     R"({"model_type": "mbart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "vocab_size": 250054,
      "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
      "max_position_embeddings": 1024, "num_hidden_layers": 12})"},
    {"nllb, an m2m 100", 615'073'792, 614'676'480, 12 * 2 * 1'024, 0,
     R"({"model_type": "m2m_100", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "vocab_size": 256206,
      "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
      "max_position_embeddings": 1024, "num_hidden_layers": 12})"},
    {"switch, a t5 with experts", 619'339'008, 222'928'896, 12 * 2 * 768, 0,
     R"({"model_type": "switch_transformers", "d_model": 768, "d_ff": 3072, "d_kv": 64, "num_layers": 12,
      "num_decoder_layers": 12, "num_heads": 12, "num_experts": 8, "num_sparse_encoder_layers": 6,
      "num_sparse_decoder_layers": 6, "encoder_sparse_step": 2, "decoder_sparse_step": 2, "expert_capacity": 64,
      "relative_attention_num_buckets": 32, "vocab_size": 32128, "router_bias": false, "feed_forward_proj": "relu"})"},
    {"bert", 109'514'298, 12 * 7'077'888 + 768 * 768 + 30'522 * 768, 0, 0,
     R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu", "hidden_size": 768,
      "intermediate_size": 3072, "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
      "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522})"},
    {"bert that pools", 109'482'240, 12 * 7'077'888, 0, 0,
     R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 768, "intermediate_size": 3072,
      "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522,
      "pooler_fc_size": 768, "pooler_num_fc_layers": 3})"},
    {"roberta", 124'697'433, 12 * 7'077'888 + 768 * 768 + 50'265 * 768, 0, 0,
     R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_size": 768,
      "intermediate_size": 3072, "max_position_embeddings": 514, "num_attention_heads": 12, "num_hidden_layers": 12,
      "type_vocab_size": 1, "vocab_size": 50265})"},
    {"distilbert", 66'985'530, 6 * 7'077'888 + 768 * 768 + 30'522 * 768, 0, 0,
     R"({"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "activation": "gelu", "dim": 768,
      "hidden_dim": 3072, "max_position_embeddings": 512, "n_heads": 12, "n_layers": 6, "sinusoidal_pos_embds": false,
      "tie_weights_": true, "vocab_size": 30522})"},
    {"modernbert", 149'655'232, 22 * 5'013'504 + 768 * 768 + 50'368 * 768, 0, 0,
     R"({"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "hidden_size": 768,
      "intermediate_size": 1152, "num_attention_heads": 12, "num_hidden_layers": 22, "vocab_size": 50368,
      "global_attn_every_n_layers": 3, "local_attention": 128, "max_position_embeddings": 8192, "norm_bias": false,
      "attention_bias": false, "mlp_bias": false, "decoder_bias": true, "classifier_bias": false})"},
    {"embeddinggemma", 302'863'104, 302'776'320, 0, 0,
     R"({"model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "head_dim": 256, "hidden_size": 768,
      "intermediate_size": 1152, "num_attention_heads": 3, "num_hidden_layers": 24, "num_key_value_heads": 1,
      "sliding_window": 512, "use_bidirectional_attention": true, "vocab_size": 262144})"},
    {"the language model of qwen 2.5 omni", 7'615'616'512, 7'070'285'824, 28 * 2 * 512, 0,
     R"({"model_type": "qwen2_5_omni", "enable_audio_output": true, "thinker_config": {"model_type":
      "qwen2_5_omni_thinker", "text_config": {"model_type": "qwen2_5_omni_text", "hidden_size": 3584,
      "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
      "vocab_size": 152064}, "vision_config": {"depth": 32}}, "talker_config": {"hidden_size": 896}})"},
    // 2 V D + 13 D^2 L + D (11 L + 4) (Peng et al. 2023). A state of two tokens and three numbers per channel.
    {"rwkv 4", 169'342'464, 12 * 13 * 768 * 768 + 50'277 * 768, 0, 12 * 5 * 768,
     R"({"model_type": "rwkv", "architectures": ["RwkvForCausalLM"], "attention_hidden_size": 768, "bos_token_id": 0,
      "context_length": 1024, "eos_token_id": 0, "hidden_size": 768, "intermediate_size": 3072,
      "layer_norm_epsilon": 1e-05, "num_hidden_layers": 12, "rescale_every": 6, "tie_word_embeddings": false,
      "torch_dtype": "float32", "use_cache": true, "vocab_size": 50277})"},
    // 13 D^2 L + 14 D L + 4 D + 2 D V, and of 6 464 D L (Peng et al. 2024). 64 numbers per channel, and two tokens.
    {"rwkv 5", 1'577'754'624, 24 * 13 * 2'048 * 2'048 + 65'536 * 2'048, 0, 24 * (64 + 2) * 2'048,
     R"({"model_type": "rwkv5", "architectures": ["Rwkv5ForCausalLM"], "attention_hidden_size": 2048,
      "hidden_size": 2048, "intermediate_size": null, "layer_norm_epsilon": 1e-05, "num_attention_heads": 64,
      "num_hidden_layers": 24, "rescale_every": 6, "tie_word_embeddings": false, "vocab_size": 65536})"},
    {"rwkv 6", 1'599'873'024, 24 * (13 * 2'048 * 2'048 + 448 * 2'048) + 65'536 * 2'048, 0, 24 * (64 + 2) * 2'048,
     R"({"model_type": "rwkv6", "architectures": ["Rwkv6ForCausalLM"], "attention_hidden_size": 2048, "head_size": 64,
      "head_size_divisor": 8, "hidden_size": 2048, "intermediate_size": null, "layer_norm_epsilon": 1e-05,
      "num_attention_heads": 64, "num_hidden_layers": 24, "rescale_every": 6, "tie_word_embeddings": false,
      "use_cache": true, "vocab_size": 65536})"},
    // Its ranks are twice those of the smaller ones.
    {"rwkv 6 with wide ranks, as flash-linear-attention writes it", 7'635'746'816,
     32 * (13 * std::int64_t{4'096} * 4'096 + 896 * 4'096) + 65'536 * 4'096, 0, 32 * (64 + 2) * 4'096,
     R"({"model_type": "rwkv6", "architectures": ["RWKV6ForCausalLM"], "attn": null, "attn_mode": "chunk",
      "expand_k": 1, "expand_v": 1, "fuse_norm": true, "gate_low_rank_dim": 128, "hidden_act": "sqrelu",
      "hidden_ratio": 3.5, "hidden_size": 4096, "intermediate_size": 14336, "norm_bias": true, "norm_eps": 1e-05,
      "norm_first": true, "num_heads": 64, "num_hidden_layers": 32, "proj_low_rank_dim": 64,
      "tie_word_embeddings": false, "use_glu": false, "vocab_size": 65536})"},
    // The first layer has no gate of values; without norms of their own they are two narrow matrices.
    {"rwkv 7", 1'527'404'544, 24 * (12 * 2'048 * 2'048 + 2 * 512 * 2'048) - 2 * 64 * 2'048 + 65'536 * 2'048, 0,
     24 * (64 + 2) * 2'048,
     R"({"model_type": "rwkv7", "architectures": ["RWKV7ForCausalLM"], "a_low_rank_dim": 96, "attn": null,
      "attn_mode": "chunk", "decay_low_rank_dim": 96, "fuse_norm": true, "fuse_cross_entropy": true,
      "gate_low_rank_dim": 256, "head_dim": 64, "hidden_act": "sqrelu", "hidden_ratio": 4.0, "hidden_size": 2048,
      "intermediate_size": 8192, "max_position_embeddings": 2048, "norm_bias": true, "norm_eps": 1e-05,
      "norm_first": true, "num_heads": 32, "num_hidden_layers": 24, "tie_word_embeddings": false, "use_cache": true,
      "v_low_rank_dim": 64, "value_dim": [2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048,
      2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048], "vocab_size": 65536})"},
    // Of each of 8 heads 256 x 512 numbers, a normaliser of 256 and the largest exponent.
    {"xlstm", 6'865'424'896, 6'658'981'888, 0, 32 * 8 * (256 * 512 + 256 + 1),
     R"({"model_type": "xlstm", "architectures": ["xLSTMForCausalLM"], "add_out_norm": true, "autocast_kernel_dtype":
      "bfloat16", "chunk_size": 64, "chunkwise_kernel": "chunkwise--triton_xl_chunk", "embedding_dim": 4096,
      "eps": 1e-06, "ffn_proj_factor": 2.667, "ffn_round_up_to_multiple_of": 64, "gate_soft_cap": 15.0,
      "hidden_size": 4096, "inference_state_dtype": "float32", "mode": "inference", "norm_eps": 1e-06,
      "norm_reduction_force_float32": true, "num_blocks": 32, "num_heads": 8, "num_hidden_layers": 32,
      "output_logit_soft_cap": 30.0, "qk_dim_factor": 0.5, "return_last_states": true, "sequence_kernel":
      "native_sequence__triton", "step_kernel": "triton", "tie_word_embeddings": false, "use_bias": false,
      "v_dim_factor": 1.0, "vocab_size": 50304, "weight_mode": "single"})"},
    // Of each layer with a block: attention over twice the width and a feed-forward block, which 13 layers share and
    // each multiplies with, and a square matrix of its own.
    {"zamba, which is the default", 7'232'490'496, 11'518'246'912, 13 * 4 * 3'712, 76 * 7'424 * (16 + 3),
     R"({"model_type": "zamba", "architectures": ["ZambaForCausalLM"]})"},
    // One block; adapters of queries, keys and values and of the feed-forward block in each of its six layers.
    {"zamba2 1.2B", 1'215'064'704, 1'759'248'384, 6 * 4 * 2'048, 38 * (4'096 * 128 + (4'096 + 2 * 128) * 3),
     R"({"architectures": ["Zamba2ForCausalLM"], "model_type": "zamba2", "adapter_rank": 128, "add_bias_linear":
      false, "attention_head_dim": 128, "attention_hidden_size": 4096, "chunk_size": 256, "hidden_size": 2048,
      "hybrid_layer_ids": [5, 11, 17, 23, 29, 35], "intermediate_size": 8192, "kv_channels": 64,
      "layers_block_type": ["mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba",
      "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba",
      "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba",
      "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba"], "mamba_d_conv": 4, "mamba_d_state": 128,
      "mamba_expand": 2, "mamba_headdim": 64, "mamba_ngroups": 1, "n_mamba_heads": 64, "num_attention_heads":
      32, "num_hidden_layers": 38, "num_key_value_heads": 32, "num_mem_blocks": 1, "num_query_groups": 32,
      "use_conv_bias": true, "use_long_context": false, "use_mem_rope": true, "use_shared_attention_adapter":
      true, "use_shared_mlp_adapter": true, "vocab_size": 32000})"},
    // 11,683,584 in its encoder with a pooler of 768 x 768 + 768, and a head of 768 x 128 + 128, a norm and 30,000
    // biases.
    {"albert", 11'683'584 - 590'592 + 98'432 + 256 + 30'000, 128 * 768 + 12 * 7'077'888 + 768 * 128 + 30'000 * 128, 0,
     0, R"({"model_type": "albert", "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0,
      "bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3,
      "gap_size": 0, "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "hidden_size": 768, "initializer_range": 0.02,
      "inner_group_num": 1, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
      "net_structure_type": 0, "num_attention_heads": 12, "num_hidden_groups": 1, "num_hidden_layers": 12,
      "num_memory_blocks": 0, "pad_token_id": 0, "type_vocab_size": 2, "vocab_size": 30000})"},
    // Two blocks that take turns, as the authors' own code writes them.
    {"zamba2 7B", 7'356'749'648, 11'026'505'728, 13 * 4 * 3'584, 81 * (7'168 * 64 + (7'168 + 4 * 64) * 3),
     R"({"add_bias_linear": false, "architectures": ["Zamba2ForCausalLM"], "attention_dropout": 0.0,
      "bos_token_id": 1, "conv_dimension": 4, "eos_token_id": 2, "expansion_factor": 2, "ffn_hidden_size":
      14336, "ft_lora": false, "gated_linear_unit": true, "hidden_size": 3584, "initializer_range": 0.02,
      "kv_channels": 112, "layers_block_type": ["mamba", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid",
      "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid",
      "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba",
      "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba",
      "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba",
      "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba",
      "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba",
      "mamba", "mamba", "mamba", "mamba", "hybrid", "mamba", "mamba", "mamba"], "lora_rank": 128,
      "mamba_headdim": 64, "mamba_ngroups": 2, "max_position_embeddings": 4096, "model_type": "zamba2",
      "num_attention_heads": 32, "num_hidden_layers": 81, "num_key_value_heads": 32, "num_logits_to_keep": 1,
      "num_mem_blocks": 2, "num_query_groups": 32, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta":
      10000, "sliding_window": null, "state_size": 64, "torch_dtype": "bfloat16", "transformers_version":
      "4.43.0.dev0", "use_cache": true, "use_mamba_kernels": true, "use_mem_rope": true,
      "use_shared_attention_lora": false, "use_shared_block_lora": true, "vocab_size": 32000})"},
};

TEST(WildArchitecture, EachHasTheTotalOfItsCheckpointAndTheWorkOfItsLayers) {
  for (const Wild& config : wild) {
    const auto imported = import_config(config.document, "config.json", catalogue());
    ASSERT_TRUE(imported) << config.name << ": " << imported.error().where << ": " << imported.error().what;
    const ParameterCounts counts = parameter_counts(imported->model);
    EXPECT_EQ(counts.total, config.total) << config.name;
    EXPECT_EQ(counts.active_matrix, config.matrix) << config.name;
    EXPECT_EQ(kv_values_per_token(imported->model), config.kv) << config.name;
    EXPECT_EQ(state_values_per_sequence(imported->model), config.state) << config.name;
  }
}

std::string refusal(std::string_view document) {
  const auto imported = import_config(document, "config.json", catalogue());
  return imported ? "" : imported.error().where + ": " + imported.error().what;
}

TEST(WildArchitecture, ListsOfLayersFitTheLayers) {
  EXPECT_NE(refusal(R"({"model_type": "mllama", "cross_attention_layers": [3, 40]})").find("cross_attention_layers"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "lfm2", "full_attn_idxs": [99]})").find("full_attn_idxs"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "lfm2", "layer_types": ["conv"]})").find("layer_types"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "recurrent_gemma", "block_types": ["mamba"]})").find("block_types"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "recurrent_gemma", "lru_width": 2561})").find("lru_width"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "gemma3n_text", "intermediate_size": [1, 2]})").find("intermediate_size"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "zamba2", "layers_block_type": ["mamba"]})").find("layers_block_type"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "openelm", "num_query_heads": [4]})").find("num_query_heads"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "kimi_linear", "kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "qk_nope_head_dim": 128, "moe_intermediate_size": 8, "num_experts": 8, "num_experts_per_token": 2,
      "linear_attn_config": {"num_heads": 2, "head_dim": 8, "kda_layers": [33]}})")
                .find("linear_attn_config.kda_layers"),
            std::string::npos);
}

TEST(WildArchitecture, WhatCannotBeDescribedSaysWhy) {
  EXPECT_NE(refusal(R"({"model_type": "whisper"})").find("audio"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "xlstm", "use_bias": true})").find("use_bias"), std::string::npos);
  EXPECT_NE(refusal(R"({"model_type": "rwkv7", "attn": {"layers": [1]}})").find("attn"), std::string::npos);
}

}  // namespace
}  // namespace assay::model
