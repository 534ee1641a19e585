#include "assay/profile/hlo/calls.h"

#include <algorithm>

#include "assay/base/record_reader.h"
#include "assay/base/text.h"

namespace assay::hlo {
namespace {

constexpr double products_forward = 2.0, products_backward = 5.0;

constexpr std::pair<std::string_view, CallKind> call_kinds[] = {
    {"product", CallKind::product},     {"convolution", CallKind::convolution},
    {"attention", CallKind::attention}, {"sharding", CallKind::sharding},
    {"to-shards", CallKind::to_shards}, {"to-whole", CallKind::to_whole},
    {"placement", CallKind::placement}, {"move", CallKind::move},
    {"top-k", CallKind::top_k}};
constexpr std::pair<std::string_view, ConvolutionPart> convolution_parts[] = {
    {"output", ConvolutionPart::output}, {"input", ConvolutionPart::input}, {"kernel", ConvolutionPart::kernel}};

void read_pair(RecordReader& reader, std::string_view key, std::array<std::string, 2>& out) {
  if (!reader.has(key)) return;
  std::vector<std::string> both;
  reader.texts(key, both);
  if (both.size() != out.size()) return reader.fault(key, "a product has two operands", "a key for each of them");
  std::copy(both.begin(), both.end(), out.begin());
}

void read_size_keys(AttentionKeys& out, RecordReader& reader) {
  reader.text("batch", out.batch);
  reader.text("heads", out.heads);
  reader.text("kv_heads", out.kv_heads);
  reader.text("queries", out.queries);
  reader.text("keys", out.keys);
  reader.text("head_dim", out.head_dim);
  reader.text("width", out.width);
}

void read_call(LibraryCall& out, RecordReader& reader) {
  reader.word("does", call_kinds, out.does);
  if (reader.has("makes")) reader.word("makes", convolution_parts, out.makes);
  reader.texts("targets", out.targets);
  for (const auto& [key, list] : std::initializer_list<std::pair<const char*, std::vector<std::string>*>>{
           {"names", &out.names}, {"causal_words", &out.causal_words}, {"backward", &out.backward}})
    if (reader.has(key)) reader.texts(key, *list);
  read_pair(reader, "contracting", out.contracting);
  read_pair(reader, "batch", out.batch);
  reader.optional_table("sizes", out.sizes, read_size_keys);
  if (reader.has("scores")) reader.text("scores", out.scores);
  if (reader.has("mask")) reader.text("mask", out.mask);
  if (reader.has("causal_from")) reader.number("causal_from", out.causal_from.emplace());
  reader.items("pass", out.of, [](std::pair<std::string, double>& pass, RecordReader& inner) {
    inner.text("part", pass.first);
    inner.number("products", pass.second);
  });
  if ((out.causal_from || !out.causal_words.empty()) && out.mask.empty())
    reader.fault("mask", "what is causal is told by a key of the configuration");
  if (out.does == CallKind::product && out.contracting[0].empty())
    reader.fault("contracting", "a product names the keys of its dimensions");
}

void read_calls_file(Calls& out, RecordReader& reader) {
  std::string id, name;
  reader.sources();
  reader.text("id", id);
  reader.text("name", name);
  reader.check_id(id);
  reader.items("call", out.calls, read_call);
}

}  // namespace

bool LibraryCall::is_backward(std::string_view target, std::string_view name) const {
  return contains_any(lower_case(target), backward) || contains_any(lower_case(name), backward);
}

double LibraryCall::forward_passes(std::string_view target, std::string_view name) const {
  if (!is_backward(target, name)) return 1.0;
  for (const auto& [part, products] : of)
    if (contains(name, part)) return products / products_forward;
  return products_backward / products_forward;
}

const LibraryCall* Calls::find(std::string_view target, std::string_view name, std::string_view configuration) const {
  for (const LibraryCall& call : calls) {
    const bool named = contains_any(target, call.targets) && (call.names.empty() || contains_any(name, call.names));
    const std::string& stated = call.scores.empty() ? call.sizes.heads : call.scores;
    if (named && (!call.states_sizes() || contains(configuration, stated))) return &call;
  }
  return nullptr;
}

Result<const Calls*> calls_of(const hardware::Catalogue& catalogue) {
  return catalogue.kept<Calls>("library calls", [&]() -> Result<Calls> {
    Calls out;
    for (const auto& [path, text] : catalogue.files("calls/")) {
      RecordFile file{.name = path};
      ASSAY_CHECK(read_record(text, file, [&](RecordReader& root) { read_calls_file(out, root); }));
    }
    std::stable_sort(out.calls.begin(), out.calls.end(),
                     [](const LibraryCall& a, const LibraryCall& b) { return a.states_sizes() && !b.states_sizes(); });
    return out;
  });
}

}  // namespace assay::hlo
