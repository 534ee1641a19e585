#include "assay/c.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/assay.h"

struct assay_engine {
  assay::Engine engine;
};
struct assay_answer {
  assay::Answer answer;
};

namespace {

/// What `make` makes, or nothing where memory runs out: no exception may reach a caller in C.
template <class F>
auto made(F&& make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return decltype(make()){};
  }
}

std::string text_of(const char* text) { return text ? text : ""; }

assay::AnswerLayout layout_of(assay_layout layout) {
  switch (layout) {
    case ASSAY_ONE_LINE:
      return assay::AnswerLayout::one_line;
    case ASSAY_SVG:
      return assay::AnswerLayout::svg;
    case ASSAY_SCREEN:
      return assay::AnswerLayout::screen;
    case ASSAY_INDENTED:
      break;
  }
  return assay::AnswerLayout::indented;
}

std::atomic<bool> interrupted{false};
struct sigaction handler_before = {};

void on_interrupt(int) {
  interrupted = true;
  assay::stop();
}

}  // namespace

assay_engine* assay_open(const assay_reach* reach) {
  return made([&] {
    assay::Reach reached;
    if (reach) {
      reached.files = reach->files != 0;
      for (const char* const* path = reach->catalogues; path && *path; ++path) reached.catalogues.emplace_back(*path);
      reached.user_catalogue = text_of(reach->user_catalogue);
      reached.programs = text_of(reach->programs);
      reached.date = text_of(reach->date);
    }
    return new assay_engine{assay::Engine(std::move(reached))};
  });
}

void assay_close(assay_engine* engine) { delete engine; }

assay_answer* assay_ask(const assay_engine* engine, const char* request, size_t size, assay_layout layout) {
  return made([&] { return new assay_answer{engine->engine.answer({request, size}, layout_of(layout))}; });
}

void assay_ask_all(const assay_engine* engine, const char* const* requests, const size_t* sizes, size_t count,
                   size_t threads, assay_layout layout, assay_answer** answers) {
  std::fill(answers, answers + count, nullptr);
  made([&] {
    std::vector<std::string_view> texts;
    for (size_t i = 0; i < count; ++i) texts.emplace_back(requests[i], sizes[i]);
    std::vector<assay::Answer> all = engine->engine.answers(texts, threads, layout_of(layout));
    for (size_t i = 0; i < count; ++i) answers[i] = new assay_answer{std::move(all[i])};
    return true;
  });
}

assay_answer* assay_schema(const char* verb) {
  return made([&] { return new assay_answer{assay::schema(verb ? verb : "")}; });
}

const char* assay_text(const assay_answer* answer) { return answer->answer.json.c_str(); }
size_t assay_size(const assay_answer* answer) { return answer->answer.json.size(); }
int assay_status(const assay_answer* answer) { return answer->answer.status; }
size_t assay_files(const assay_answer* answer) { return answer->answer.files.size(); }

const char* assay_file_path(const assay_answer* answer, size_t index) {
  return answer->answer.files[index].first.c_str();
}

const char* assay_file_bytes(const assay_answer* answer, size_t index, size_t* size) {
  const std::string& bytes = answer->answer.files[index].second;
  *size = bytes.size();
  return bytes.c_str();
}

void assay_free(assay_answer* answer) { delete answer; }

void assay_stop(int stop) { assay::stop(stop != 0); }

int assay_catch_interrupt(int begin) {
  if (begin != 0) {
    struct sigaction ours = {};
    ours.sa_handler = on_interrupt;
    ::sigaction(SIGINT, &ours, &handler_before);
    return 0;
  }
  ::sigaction(SIGINT, &handler_before, nullptr);
  if (!interrupted.exchange(false)) return 0;
  assay::stop(false);
  return 1;
}

const char* assay_version() { return assay::about().version.data(); }
const char* assay_commit() { return assay::about().commit.data(); }
const char* assay_catalogue_date() {
  static const std::string date = assay::about().catalogue;
  return date.c_str();
}
