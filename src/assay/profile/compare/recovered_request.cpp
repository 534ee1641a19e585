// The command line that what ran in a profile stands for.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "assay/base/text.h"
#include "assay/model/model_catalogue.h"
#include "assay/predict/kernel/kernel_models.h"
#include "assay/profile/compare/recovered.h"

namespace assay::compare {
namespace {

/// Whether kernels tell that it is not this model of the catalogue.
bool differs(const RecoveredModel& wanted, const model::Transformer& known) {
  const model::Layer& layer = known.decoder.kinds.front();
  const bool turns = layer.attention->rotary && known.learned_positions == 0 && layer.attention->relative_buckets == 0;
  const bool normalised = layer.attention->qk_norm == model::Attention::QkNorm::per_head;
  if (wanted.rotary.value_or(turns) != turns || wanted.tied.value_or(known.tied) != known.tied) return true;
  if (wanted.norms > 0 && (wanted.head_norms != normalised || wanted.composed_norms != known.norm.composed ||
                           wanted.rotation != layer.attention->rotation || wanted.logits != known.logits ||
                           wanted.turned != layer.attention->turned))
    return true;
  if (wanted.activation.empty()) return false;
  const auto* const composed =
      std::find(std::begin(model::activation_names), std::end(model::activation_names), wanted.activation);
  return layer.feed_forward->function !=
         (composed == std::end(model::activation_names)
              ? model::Activation::simple
              : static_cast<model::Activation>(composed - std::begin(model::activation_names)));
}

/// Compilers pad products to rows that load whole.
std::int64_t padded(std::int64_t vocabulary) {
  const double padded = kernel::padded_row(static_cast<double>(vocabulary), storage(Dtype::bf16, 1), kernel::bulk_copy);
  return static_cast<std::int64_t>(padded);
}

/// Whether a model of the catalogue has the same layers.
bool same_sizes(const RecoveredModel& wanted, const model::Transformer& known) {
  // Layers alone are those of many models.
  const std::int64_t vocabulary = wanted.vocabulary > 0 ? wanted.vocabulary : wanted.embedded;
  if (known.encoder || known.decoder.kinds.size() != 1 || known.d_model != wanted.hidden) return false;
  const model::Layer& layer = known.decoder.kinds.front();
  if (!layer.attention || !layer.feed_forward || layer.state_space) return false;
  const model::Attention& attention = *layer.attention;
  const model::FeedForward& block = *layer.feed_forward;
  return attention.heads == wanted.heads && attention.kv_heads == wanted.kv_heads &&
         attention.head_dim == wanted.head_dim && attention.kv_rank == 0 && block.width == wanted.intermediate &&
         block.gated == wanted.gated && block.experts == wanted.experts &&
         (wanted.experts_per_token == 0 || block.experts_per_token == wanted.experts_per_token) &&
         block.shared_width == wanted.shared &&
         (known.vocabulary == vocabulary || padded(known.vocabulary) == vocabulary);
}

/// Our own description, of layers that no simple architecture has.
std::string description(const RecoveredModel& model) {
  std::string out = fmt::format(
      R"({{"model_type":"transformer","d_model":{},"d_ff":{},"layers":{},"heads":{},"kv_heads":{},"head_dim":{})",
      model.hidden, model.intermediate, model.layers, model.heads, model.kv_heads, model.head_dim);
  out += fmt::format(R"(,"vocabulary":{})", std::max<std::int64_t>(1, model.vocabulary));
  out += fmt::format(R"(,"gated":{})", model.gated);
  if (model.norms > 0) out += fmt::format(R"(,"norms":{})", model.norms);
  if (model.composed_norms)
    out += R"(,"norm":"composed_layer")";
  else if (model.centred.value_or(false))
    out += R"(,"norm":"layer")";
  if (model.rotation != model::Rotation::halves)
    out += fmt::format(R"(,"rotation":"{}")", model::rotation_names[static_cast<std::size_t>(model.rotation)]);
  if (model.turned > 0) out += fmt::format(R"(,"turned":{})", model.turned);
  if (model.projections != model::JoinedProjection::none)
    out += fmt::format(R"(,"projections":"{}")", model::projection_names[static_cast<std::size_t>(model.projections)]);
  if (model.joined_gate) out += R"(,"joined_gate":true)";
  if (model.logits != model::Logits::plain)
    out += fmt::format(R"(,"logits":"{}")", model::logits_names[static_cast<std::size_t>(model.logits)]);
  if (model.head_norms) out += R"(,"qk_norm":"per_head")";
  if (model.norms == 1) out += R"(,"parallel":true)";
  if (model.tied.value_or(false)) out += R"(,"tied":true)";
  if (model.biased.value_or(false)) out += R"(,"bias":true)";
  if (!model.rotary.value_or(true))
    out += fmt::format(R"(,"learned_positions":{})", std::max<std::int64_t>(1, model.seen));
  if (!model.activation.empty()) out += fmt::format(R"(,"hidden_act":"{}")", model.activation);
  if (model.experts > 0)
    out += fmt::format(R"(,"experts":{},"experts_per_token":{})", model.experts, model.experts_per_token);
  if (model.shared > 0) out += fmt::format(R"(,"shared_width":{})", model.shared);
  return out + "}";
}

/// Of heads whose keys and values are made of one compressed vector.
std::string latent_configuration(const RecoveredModel& model) {
  const bool routed = model.experts > 0;
  std::string out = fmt::format(
      R"({{"model_type":"deepseek_v2","hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},"num_attention_heads":{})",
      model.hidden, routed && model.dense_layers > 0 ? model.dense_width : model.intermediate, model.layers,
      model.heads);
  out +=
      fmt::format(R"(,"kv_lora_rank":{},"q_lora_rank":{},"qk_nope_head_dim":{},"qk_rope_head_dim":{},"v_head_dim":{})",
                  model.kv_rank, model.q_rank > 0 ? fmt::to_string(model.q_rank) : "null",
                  model.head_dim - model.rope_dim, model.rope_dim, model.value_dim);
  if (routed)
    out += fmt::format(
        R"(,"n_routed_experts":{},"num_experts_per_tok":{},"moe_intermediate_size":{},"n_shared_experts":{},"first_k_dense_replace":{})",
        model.experts, model.experts_per_token, model.intermediate, model.shared / model.intermediate,
        model.dense_layers);
  else
    out += R"(,"n_routed_experts":0)";
  if (model.vocabulary > 0) out += fmt::format(R"(,"vocab_size":{})", model.vocabulary);
  return out + "}";
}

/// Of the simplest architecture that has such layers.
std::string configuration(const RecoveredModel& model) {
  if (model.kv_rank > 0) return latent_configuration(model);
  const bool usual = (model.gated ? model.activation == "silu" : model.activation == "gelu") &&
                     (model.norms == 2 || model.norms == 0) && !model.head_norms && !model.tied.value_or(false) &&
                     model.rotary.value_or(true) && model.centred.value_or(!model.gated) == !model.gated &&
                     model.biased.value_or(!model.gated) == !model.gated && !model.composed_norms &&
                     model.rotation == model::Rotation::halves && model.logits == model::Logits::plain &&
                     model.turned == 0 && model.projections == model::JoinedProjection::none && !model.joined_gate &&
                     model.shared == 0;
  if (!model.activation.empty() && !usual && model.vocabulary > 0) return description(model);
  const std::string_view type = model.experts > 0 ? "mixtral" : model.gated ? "llama" : "starcoder2";
  std::string out = fmt::format(
      R"({{"model_type":"{}","hidden_size":{},"intermediate_size":{},"num_hidden_layers":{},"num_attention_heads":{},"num_key_value_heads":{})",
      type, model.hidden, model.intermediate, model.layers, model.heads, model.kv_heads);
  if (model.heads * model.head_dim != model.hidden) out += fmt::format(R"(,"head_dim":{})", model.head_dim);
  if (model.vocabulary > 0) out += fmt::format(R"(,"vocab_size":{})", model.vocabulary);
  if (model.experts > 0)
    out += fmt::format(R"(,"num_local_experts":{},"num_experts_per_tok":{})", model.experts,
                       std::max<std::int64_t>(1, model.experts_per_token));
  if (model.tied.value_or(false)) out += R"(,"tie_word_embeddings":true)";
  return out + "}";
}

/// A model as a word of a command line; screens break lines at the blanks.
std::string quoted(const std::string& model) {
  return model.starts_with('{') ? fmt::format("'{}'", join(split(model, ','), ", ")) : model;
}

}  // namespace

std::string model_argument(const RecoveredModel& wanted, const hardware::Catalogue& catalogue) {
  std::string near;
  for (const std::string& id : model::model_ids(catalogue)) {
    const auto entry = model::catalogue_model(id, catalogue, "models");
    if (!entry || !same_sizes(wanted, entry->imported.model)) continue;
    const model::Transformer& known = entry->imported.model;
    if (differs(wanted, known)) continue;
    const std::int64_t window = known.decoder.kinds.front().attention->window;
    const bool wider = window > 0 && wanted.seen > window;
    if (known.decoder.layers() == wanted.layers && !wider) return id;
    if (!near.empty()) continue;
    // Families name their layers in their own ways.
    for (const std::string_view key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers"}) {
      const std::string tried =
          fmt::format(R"({{"base":"{}","{}":{}{}}})", id, key, wanted.layers, wider ? R"(,"sliding_window":null)" : "");
      const auto read = model::load_model(tried, catalogue, "MODEL");
      if (!read || read->model.decoder.layers() != wanted.layers) continue;
      near = tried;
      break;
    }
  }
  if (!near.empty()) return near;
  return configuration(wanted);
}

std::string train_command(const std::string& model, const std::string& on, std::int64_t batch, std::int64_t sequence,
                          const std::vector<program::MeshAxis>& axes) {
  std::string out = fmt::format("assay train {} --on {} --batch {}seq --seq {}", quoted(model), on, batch, sequence);
  for (const program::MeshAxis& axis : axes)
    if (axis.role && axis.size > 1) out += fmt::format(" --{} {}", program::name(*axis.role), axis.size);
  return out;
}

std::string command_line(const RecoveredRun& run, const std::string& model, const std::string& chip,
                         const std::vector<program::MeshAxis>& axes) {
  const std::int64_t ranks = program::Mesh{axes}.devices();
  std::string out;
  const std::string named = quoted(model);
  switch (run.kind) {
    case RecoveredRun::Kind::training:
      out = train_command(model, fmt::format("{}:{}", chip, ranks), run.batch * run.microbatches * ranks, run.sequence,
                          axes);
      out +=
          fmt::format(" --micro-batch {} --recompute {} --offload none", run.batch, run.recomputes ? "full" : "none");
      if (run.updated)
        out += fmt::format(" --params {0} --grads {0} --moments {0} --optimizer none", name(*run.updated));
      break;
    case RecoveredRun::Kind::prefill:
      out = fmt::format("assay serve {} --on {}:1 --batch {} --prompts {} --prompt {} --output 1", named, chip,
                        run.batch, run.batch, run.sequence);
      break;
    case RecoveredRun::Kind::decode:
      out = fmt::format("assay serve {} --on {}:1 --batch {} --prompt {} --output 2", named, chip, run.batch,
                        std::max<std::int64_t>(1, run.sequence - 1));
      if (run.repeats_keys) out += " --cache-kernel copies";
      break;
  }
  out += fmt::format(" --software any --fusion {}", run.compiled ? "compiled" : "eager");
  const bool serves_plain = run.plain && run.kind != RecoveredRun::Kind::training;
  if (!run.attention.empty() && !serves_plain) out += fmt::format(" --attention-kernel {}", run.attention);
  if (run.plain && run.attention.empty() && run.kind == RecoveredRun::Kind::training) out += " --plain-attention";
  if (run.unfused_update) out += " --unfused-update";
  if (run.masked && run.kind == RecoveredRun::Kind::training) out += " --explicit-mask";
  return out;
}

}  // namespace assay::compare
