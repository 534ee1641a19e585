#include "assay/assay.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>

#include "assay/ask/report/render.h"
#include "assay/ask/verbs/faults.h"
#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/table/schema.h"
#include "assay/ask/verbs/table/value_kinds.h"
#include "assay/base/parallel.h"
#include "assay/base/progress.h"
#include "assay/base/version.h"
#include "assay/hardware/embedded.h"

namespace assay {
namespace {

report::Layout layout_of(AnswerLayout layout) {
  return layout == AnswerLayout::one_line ? report::Layout::one_line : report::Layout::indented;
}

Answer error_answer(const Error& error, AnswerLayout layout, std::string_view request) {
  const bool is_bug = error.kind == Error::Kind::internal;
  return {report::render_json(error, layout_of(layout), is_bug ? request : std::string_view{}),
          verbs::exit_code(error),
          {}};
}

}  // namespace

struct Engine::State {
  Reach reach;
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  std::optional<Error> unread;  ///< why an overlay cannot be used

  Result<Answer> answer(std::string_view text, AnswerLayout layout, const std::vector<Attachment>& attached) const {
    if (unread) return tl::unexpected<Error>(*unread);
    ASSAY_TRY(request, verbs::parse_json_request(text));
    std::map<std::string, std::string_view> files;
    for (const Attachment& file : attached) files.emplace(file.name, file.bytes);
    if (!reach.files) ASSAY_CHECK(verbs::check_without_files(request, files));
    ASSAY_CHECK(verbs::apply_config_file(request));
    std::optional<hardware::Catalogue> own;
    if (const auto own_files = request.value("catalogue"))
      ASSAY_CHECK(verbs::overlay_catalogue(own.emplace(catalogue), *own_files));
    const bool picture = layout == AnswerLayout::svg;
    if (picture) request.want_picture();
    ASSAY_TRY(response,
              verbs::ask(request, {own ? *own : catalogue,
                                   {reach.user_catalogue, reach.programs, reach.date, {}, std::move(files)}}));
    const report::Format format = picture ? report::Format::svg : report::Format::table;
    std::string shown = picture || layout == AnswerLayout::screen
                            ? report::render(response, {.format = format, .explain = request.explain()})
                            : report::render_json(response, request.explain(), layout_of(layout));
    return Answer{std::move(shown), static_cast<int>(response.outcome), std::move(response.files)};
  }
};

Engine::Engine(Reach reach) {
  auto state = std::make_unique<State>();
  for (const std::string& directory : reach.catalogues)
    if (const auto read = state->catalogue.overlay(directory); !read && !state->unread) state->unread = read.error();
  if (!reach.files) state->catalogue.close_files();
  state->reach = std::move(reach);
  state_ = std::move(state);
}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Answer Engine::answer(std::string_view request, AnswerLayout layout, const std::vector<Attachment>& attached) const {
  auto answered = verbs::without_exceptions([&] { return state_->answer(request, layout, attached); });
  return answered ? std::move(*answered) : error_answer(answered.error(), layout, request);
}

std::vector<Answer> Engine::answers(const std::vector<std::string_view>& requests, std::size_t threads,
                                    AnswerLayout layout) const {
  std::vector<Answer> answers(requests.size());
  const auto ask = [&](std::size_t i) {
    answers[i] = progress.is_stopped() ? error_answer({Error::Kind::input, "", "stopped before it was asked", "", {}},
                                                      layout, requests[i])
                                       : answer(requests[i], layout);
  };
  if (threads == 1 || requests.size() == 1) {
    for (std::size_t i = 0; i < requests.size(); ++i) ask(i);
    return answers;
  }
  // One request at a time is taken by each thread; the grain only says how many threads there are.
  const std::size_t grain = threads == 0 ? 1 : std::max<std::size_t>(1, (requests.size() + threads - 1) / threads);
  parallel_for(
      requests.size(), grain, [] { return OneOfMany(); }, [&](std::size_t i, OneOfMany&) { ask(i); });
  return answers;
}

void stop(bool wanted) { progress.stop.store(wanted, std::memory_order_relaxed); }

About about() { return {version, commit(), hardware::catalogue_date()}; }

Answer schema(std::string_view verb) {
  const auto found = verbs::without_exceptions([&] { return verbs::json_schema(verb); });
  if (!found) return error_answer(found.error(), AnswerLayout::indented, verb);
  return {report::render_json(*found), 0, {}};
}

}  // namespace assay
