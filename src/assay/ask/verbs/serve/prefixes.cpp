#include "assay/ask/verbs/serve/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/ask/draw/flow.h"
#include "assay/ask/verbs/option_values.h"
#include "assay/base/text.h"
#include "assay/model/accounting.h"
#include "assay/profile/trace/bytes.h"

namespace assay::verbs::serve {
namespace {

std::optional<std::int64_t> blocks_of(const std::optional<Bytes>& memory, Bytes block) {
  if (!memory) return std::nullopt;
  return static_cast<std::int64_t>(*memory / block);
}

Result<void> read_bytes(const Request& request, std::string_view option, std::optional<Bytes>& out) {
  const auto text = request.value(option);
  if (!text) return {};
  ASSAY_TRY(bytes, parse_as<Bytes>(*text, fmt::format("--{}", option)));
  if (!(bytes >= Bytes(0))) return fail(fmt::format("--{}", option), "it must not be negative", "e.g. 40GB");
  out = bytes;
  return {};
}

/// Memory and what it hits, doubling up to what all prefixes need.
report::Items size_rows(const PrefixCaching& prefixes, std::int64_t all) {
  constexpr int most_rows = 10;
  std::vector<std::int64_t> sizes{all};
  while (sizes.back() > 1 && std::ssize(sizes) < most_rows) sizes.push_back((sizes.back() + 1) / 2);
  std::reverse(sizes.begin(), sizes.end());
  return report::rows_of(sizes, [&](const std::int64_t blocks) {
    return report::Members{{"memory", static_cast<double>(blocks) * prefixes.block},
                           {"hit_share", prefixes.requests->reuse.with(blocks).share()}};
  });
}

constexpr std::size_t most_nodes = 40;

report::Items tree_rows(const PrefixCaching& prefixes) {
  return report::rows_of(prefixes.requests->trie.runs(most_nodes), [&](const serving::PrefixNode& node) {
    report::Members row{{"tokens", Tokens(static_cast<double>(node.blocks * prefixes.requests->trace.block))},
                        {"requests", node.requests}};
    if (node.parent) row.emplace_back("parent", static_cast<std::int64_t>(*node.parent));
    return row;
  });
}

}  // namespace

Result<std::string> text_of_requests(const std::string& value, std::string_view where, const Context& context) {
  if (trim(value).starts_with('{')) return value;
  const auto& attached = context.surroundings.attached;
  std::string bytes;
  Bytes largest = trace::largest_profile;
  if (const auto file = attached.find(value); file != attached.end()) {
    bytes = std::string(file->second);
    largest = trace::largest_attached;
  } else {
    ASSAY_SET(bytes, trace::file_bytes(value, where));
  }
  if (trace::is_gzip(bytes)) return trace::inflated(bytes, value, largest);
  return bytes;
}

Result<void> read_requests(const Request& request, const Context& context, ServeQuery& query) {
  const auto value = request.value("requests");
  for (const char* option : {"prefix-memory", "prefix-host"})
    if (!value && request.has(option))
      return fail(fmt::format("--{}", option), "it needs requests whose prefixes are kept, and --requests is not given",
                  "add --requests FILE", Error::Kind::usage);
  if (!value) return {};
  for (const char* option : {"prompt", "prompt-lengths", "output-lengths", "prefix-hit"})
    if (request.has(option))
      return fail(fmt::format("--{}", option), "the requests of --requests have their own lengths and prefixes",
                  "leave one of them out", Error::Kind::usage);
  if (query.model().encoder)
    return fail("--requests", fmt::format("the encoder of {} attends in both directions", query.model().id),
                "prefixes of prompts cannot be kept");
  ASSAY_TRY(text, text_of_requests(*value, "--requests", context));
  ASSAY_TRY(trace, serving::parse_request_trace(text, trim(*value).starts_with('{') ? "--requests" : *value));
  PrefixCaching prefixes{std::make_shared<const PrefixRequests>(PrefixRequests{std::move(trace)}), {}, {}, {}, {}};
  ASSAY_CHECK(read_bytes(request, "prefix-memory", prefixes.memory));
  ASSAY_CHECK(read_bytes(request, "prefix-host", prefixes.host));
  if (prefixes.host && !prefixes.memory)
    return fail("--prefix-host", "without --prefix-memory the chips hold all prefixes", "add --prefix-memory 40GB",
                Error::Kind::usage);
  query.prefixes = std::move(prefixes);
  return {};
}

Result<void> replay_requests(const Request& request, ServeQuery& query) {
  if (!query.prefixes) return {};
  PrefixCaching& prefixes = *query.prefixes;
  prefixes.block =
      storage(query.question.setup.formats.kv_cache,
              static_cast<double>(model::kv_values_per_token(query.model()) * prefixes.requests->trace.block));
  std::optional<std::int64_t> blocks = blocks_of(prefixes.memory, prefixes.block);
  if (blocks && prefixes.host) *blocks += *blocks_of(prefixes.host, prefixes.block);
  query.question.prefix_memory = prefixes.memory.value_or(Bytes());
  prefixes.replay = prefixes.requests->reuse.with(blocks);
  const auto most = static_cast<double>(query.question.prompt - 1) / static_cast<double>(query.question.prompt);
  query.question.cached_prompt = std::min(prefixes.replay.share(), most);
  query.notes.push_back(fmt::format("--requests: {} of the prompts' tokens are cached{}",
                                    report::percent(prefixes.replay.share()),
                                    request.has("prefix-memory") ? "" : ", with memory for all of them"));
  return {};
}

Result<void> check_prefix_memory(const ServeQuery& query, const search::ServingSearch& found,
                                 const serving::ServingPoint& point, report::Response& response) {
  const PrefixCaching& prefixes = *query.prefixes;
  const auto replica = [](const serving::ServingPoint& p) { return static_cast<double>(p.strategy.replica_chips()); };
  const auto free_of = [&](const serving::ServingPoint& p) {
    const Bytes beside = query.question.chip_memory - (p.memory.total() - p.memory.prefixes);
    return replica(p) * std::max(Bytes(), beside);
  };
  const auto chips_text = [](double chips) { return chips == 1.0 ? "the chip" : fmt::format("{} chips", chips); };
  if (prefixes.memory && !found.fits) {
    serving::ServingQuestion without = query.question;
    without.prefix_memory = Bytes();
    search::ServingChoices least = query.choices;
    if (!least.batch) least.most_batch = 1;
    ASSAY_TRY(bare, search::search_serving(without, query.cluster, least));
    if (!bare.fits) return {};  // nor does the model without prefixes
    const auto roomiest = std::max_element(bare.front.begin(), bare.front.end(),
                                           [&](const auto& a, const auto& b) { return free_of(a) < free_of(b); });
    return fail(
        "--prefix-memory",
        fmt::format("{} is more than is free on {} of a replica: {} of {} beside {} of weights and {} of cache of "
                    "a batch of {}",
                    human(*prefixes.memory), chips_text(replica(*roomiest)), human(free_of(*roomiest)),
                    human(replica(*roomiest) * query.question.chip_memory),
                    human(replica(*roomiest) * roomiest->memory.weights),
                    human(replica(*roomiest) * roomiest->memory.cache), human_number(roomiest->batch)),
        "use less, add --prefix-host for what is evicted, or more chips");
  }
  const hardware::Chip& chip = query.cluster.chip;
  if (prefixes.host && chip.host.memory) {
    const double hosts = replica(point) / static_cast<double>(chip.host.chips.value);
    const Bytes have = hosts * chip.host.memory->value;
    if (*prefixes.host > have)
      return fail("--prefix-host",
                  fmt::format("{} is more than the {} of host memory for {} of a replica", human(*prefixes.host),
                              human(have), chips_text(replica(point))),
                  fmt::format("at most {}, or larger replicas (--dp)", human(have)));
  }
  const Bytes all = static_cast<double>(prefixes.requests->trie.size()) * prefixes.block;
  if (!prefixes.memory && found.fits && all > free_of(point))
    response.important.push_back(fmt::format(
        "--requests: all prefixes take {}, and {} of a replica {} {} free beside this batch: --prefix-memory "
        "bounds them",
        human(all), chips_text(replica(point)), replica(point) > 1.0 ? "have" : "has", human(free_of(point))));
  return {};
}

report::Members prefix_section(const ServeQuery& query, const serving::ServingPoint& point) {
  const PrefixCaching& prefixes = *query.prefixes;
  const serving::RequestTrace& trace = prefixes.requests->trace;
  const std::int64_t all = prefixes.requests->trie.size();
  const Flops per_token = model::token_flops(Plain{}, query.model(), query.question.prompt).forward;
  report::Members out{{"requests", static_cast<std::int64_t>(trace.requests.size())},
                      {"block", Tokens(static_cast<double>(trace.block))},
                      {"distinct_blocks", all},
                      {"memory_of_all", static_cast<double>(all) * prefixes.block},
                      {"prompt_tokens", prefixes.replay.prompts},
                      {"hit_tokens", prefixes.replay.hits},
                      {"hit_share", prefixes.replay.share()},
                      {"evicted_blocks", prefixes.replay.evicted},
                      {"saved_flops", prefixes.replay.hits.value() * per_token}};
  if (trace.span)
    out.emplace_back("requests_per_second", static_cast<double>(trace.requests.size()) / trace.span->value());
  if (prefixes.memory) out.emplace_back("memory", *prefixes.memory);
  if (prefixes.host) {
    const serving::PrefixReplay chips = prefixes.requests->reuse.with(blocks_of(prefixes.memory, prefixes.block));
    out.emplace_back("host", report::Members{{"memory", *prefixes.host},
                                             {"hit_share", prefixes.replay.share() - chips.share()},
                                             {"loaded_tokens", prefixes.replay.hits - chips.hits}});
  }
  if (const std::int64_t replicas = point.strategy.data; replicas > 1) {
    const auto share = [&](serving::PrefixRouting routing) {
      return serving::replay_prefixes(prefixes.requests->trie, blocks_of(prefixes.memory, prefixes.block), replicas,
                                      routing)
          .share();
    };
    out.emplace_back("routing", report::Members{{"replicas", replicas},
                                                {"in_turn", share(serving::PrefixRouting::in_turn)},
                                                {"by_prefix", share(serving::PrefixRouting::by_prefix)}});
  }
  out.emplace_back("sizes", size_rows(prefixes, all));
  out.emplace_back("tree", tree_rows(prefixes));
  return out;
}

draw::Scene prefix_picture(const ServeQuery& query) {
  const PrefixCaching& prefixes = *query.prefixes;
  draw::Flow flow;
  flow.title = fmt::format("Prefixes of {} requests", prefixes.requests->trace.requests.size());
  flow.subtitle =
      fmt::format("{} of their tokens were cached by requests before", report::percent(prefixes.replay.share()));
  for (const serving::PrefixNode& node : prefixes.requests->trie.runs(most_nodes)) {
    draw::FlowNode box;
    box.name = fmt::format("{} tokens", node.blocks * prefixes.requests->trace.block);
    box.lines.push_back({fmt::format("{} request{}", node.requests, node.requests == 1 ? "" : "s"),
                         node.requests > 1 ? draw::ColourRole::ink : draw::ColourRole::muted});
    box.colour = node.requests > 1 ? draw::ColourRole::series_5 : draw::ColourRole::grid;
    if (node.parent) box.inputs.push_back(*node.parent);
    flow.nodes.push_back(std::move(box));
  }
  return draw::draw_flow(flow);
}

}  // namespace assay::verbs::serve
