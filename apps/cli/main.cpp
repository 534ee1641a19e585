// The command line: parse, ask, print. No arithmetic.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "assay/ask/verbs/faults.h"
#include "assay/ask/verbs/request.h"
#include "assay/ask/verbs/table/pages.h"
#include "assay/assay.h"
#include "assay/base/progress.h"
#include "assay/base/text.h"
#include "json_lines.h"
#include "mcp.h"
#include "ui/ui.h"

namespace {

using namespace assay;

using verbs::exit_code, verbs::exit_input, verbs::exit_interrupted, verbs::exit_usage;

bool write(std::FILE* to, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
}

std::atomic<std::int64_t> first_interrupt{0};  ///< nanoseconds of the steady clock; 0: none yet

/// Asks whatever runs for its best result so far; a second interrupt ends the program as usual. One Ctrl-C may arrive
/// twice, from the terminal or `timeout` and from a program between that passes it on: a second one is at least half a
/// second later.
void ask_to_stop(int signal) {
  static_assert(decltype(first_interrupt)::is_always_lock_free);  // anything else may not be used here
  using namespace std::chrono;
  const std::int64_t now = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  if (std::int64_t first = 0; !first_interrupt.compare_exchange_strong(first, now)) {
    if (nanoseconds(now - first) < milliseconds(500)) return;
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  progress.stop.store(true, std::memory_order_relaxed);
}

/// Watches while a request is answered. On a terminal it shows the progress once it takes over a second; after an
/// interrupt it ends the program if no answer comes soon, as from a computation without partial results.
class Watch {
 public:
  Watch() : shows_(::isatty(STDERR_FILENO) == 1) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      // Without a spare thread no progress is shown, and the second interrupt ends the program.
    }
  }
  ~Watch() { end(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Erases the line: nothing is shown any more.
  void end() {
    {
      const std::lock_guard lock(guard_);
      done_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr std::chrono::milliseconds first{1000}, again{200}, patience{2000};
  using Clock = std::chrono::steady_clock;

  void run() {
    const Clock::time_point start = Clock::now();
    std::optional<Clock::time_point> asked;
    bool shown = false;
    std::unique_lock lock(guard_);
    while (!wake_.wait_for(lock, again, [this] { return done_; })) {
      const Clock::time_point now = Clock::now();
      if (!asked && progress.is_stopped()) asked = now;
      if (asked && now - *asked >= patience) {
        if (shown) write(stderr, erase);
        write(stderr, "interrupted before there was an answer\n");
        std::_Exit(exit_interrupted);
      }
      if (!shows_ || now - start < first) continue;
      shown = true;
      const char* counted = progress.counted.load();
      const std::int64_t done = progress.done.load(), total = progress.total.load();
      write(stderr, fmt::format("{}{:.0f} s{}  (Ctrl-C: the best so far)", erase,
                                std::chrono::duration<double>(now - start).count(),
                                counted ? fmt::format("  {} of {} {}", human_count(done), human_count(total), counted)
                                        : std::string()));
    }
    if (shown) write(stderr, erase);
  }

  static constexpr std::string_view erase = "\r\x1b[2K";
  bool shows_, done_ = false;
  std::mutex guard_;
  std::condition_variable wake_;
  std::thread thread_;
};

/// A directory of the user's own files that overlays the catalogue if it exists; `assay measure` writes it.
std::string user_catalogue() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data) return std::string(data) + "/assay";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.local/share/assay" : "";
}

/// Directories that overlay the catalogue; later ones take precedence.
std::vector<std::string> catalogue_directories() {
  std::vector<std::string> all;
  if (std::error_code failed; std::filesystem::is_directory(user_catalogue(), failed)) all.push_back(user_catalogue());
  if (const char* directory = std::getenv("ASSAY_CATALOGUE"); directory && *directory) all.emplace_back(directory);
  return all;
}

/// Which process of a launch this is, as the launcher tells it: Open MPI's mpirun, or srun.
sweep::Ranks ranks_of_launch() {
  static constexpr struct {
    const char *rank, *count, *launch, *step, *restart;
  } launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", nullptr, nullptr},
                   {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}};
  const auto text = [](const char* name) { return name ? std::getenv(name) : nullptr; };
  for (const auto& launcher : launchers) {
    const char *rank = text(launcher.rank), *count = text(launcher.count), *launch = text(launcher.launch);
    if (!rank || !count || !launch) continue;
    std::string all = launch;
    for (const char* more : {text(launcher.step), text(launcher.restart)})
      if (more) all += fmt::format("-{}", more);
    return {std::atoi(rank), std::atoi(count), std::move(all)};
  }
  return {};
}

verbs::Surroundings surroundings() {
  std::error_code failed;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::time_t now = std::time(nullptr);
  char date[16] = "";
  if (std::tm parts{}; ::localtime_r(&now, &parts)) std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
  return {user_catalogue(), failed ? "" : self.parent_path().string(), date, ranks_of_launch()};
}

tl::unexpected<Error> unwritable(const std::string& path, std::string_view where, int because, std::string hint) {
  return fail(std::string(where), fmt::format("{} cannot be written: {}", in_quotes(path), std::strerror(because)),
              std::move(hint));
}

Result<void> save(const std::string& path, std::string_view text, std::string_view where) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return unwritable(path, where, errno, "name a file in a directory that exists and may be written to");
  return {};
}

/// A file that a verb writes in addition to its answer: the one that an option names, or one below a directory, which
/// is created if missing.
Result<void> save_extra(const verbs::Request& request, const std::string& path, std::string_view text) {
  for (const verbs::OptionSpec& option : request.verb().options)
    if (request.value(option.name) == path) return save(path, text, fmt::format("--{}", option.name));
  std::error_code failed;
  if (const auto parent = std::filesystem::path(path).parent_path(); !parent.empty())
    std::filesystem::create_directories(parent, failed);
  return save(path, text, path);
}

/// The file of --output. Where a verb has an --output of its own (a number of tokens), what names no file is its.
std::optional<std::string> output_file(const verbs::Request& request) {
  const auto& own = request.verb().options;
  const bool has_own =
      std::any_of(own.begin(), own.end(), [](const verbs::OptionSpec& o) { return o.name == "output"; });
  for (const std::string& value : request.values("output"))
    if (!has_own || verbs::names_output_file(value)) return value;
  return std::nullopt;
}

/// Whether files can be made below a directory, which may be missing itself.
Result<void> check_directory(const std::string& path, std::string_view where) {
  std::error_code failed;
  std::filesystem::path known = path;
  while (!std::filesystem::exists(known, failed) && known.has_relative_path()) known = known.parent_path();
  if (known.empty()) known = ".";
  errno = ENOTDIR;
  if (std::filesystem::is_directory(known, failed) && ::access(known.c_str(), W_OK) == 0) return {};
  return unwritable(path, where, errno, "name a directory that may be written to");
}

/// Checks, before minutes of measuring or fitting, that results can be written. The first of several ranks writes.
Result<void> check_places(const verbs::Request& request) {
  if (ranks_of_launch().rank > 0 || request.has("check")) return {};
  for (const std::string_view option : {"out", "fit"})
    if (const auto directory = request.value(option))
      ASSAY_CHECK(check_directory(*directory, fmt::format("--{}", option)));
  if (const std::string own = user_catalogue(); request.verb().name == "measure" && !request.has("out") && !own.empty())
    ASSAY_CHECK(check_directory(own, "--out"));
  return {};
}

/// The format of --format, or of the ending of --output.
Result<report::Format> chosen_format(const verbs::Request& request) {
  static constexpr std::pair<std::string_view, report::Format> formats[] = {
      {"table", report::Format::table}, {"tree", report::Format::tree}, {"json", report::Format::json},
      {"csv", report::Format::csv},     {"md", report::Format::md},     {"svg", report::Format::svg},
      {"html", report::Format::html}};
  std::string name = request.value("format").value_or("");
  if (const auto output = output_file(request); name.empty() && output) {
    const std::string file = output->substr(output->rfind('/') + 1);
    const std::size_t dot = file.rfind('.');
    name = dot == std::string::npos ? "" : file.substr(dot + 1);
    if (name == "txt") name = "table";
    bool known = name.empty();
    for (const auto& [text, format] : formats) known = known || text == name;
    if (!known)
      return fail("--output", fmt::format("unknown file extension .{}", name),
                  "use .txt, .json, .csv, .md, .svg or .html, or give --format", Error::Kind::usage);
  }
  for (const auto& [text, format] : formats)
    if (text == name) return format;
  return report::Format::table;
}

bool wants_colour(const verbs::Request& request, bool to_file) {
  const std::string when = request.value("color").value_or("auto");
  if (when != "auto") return when == "always";
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return !to_file && (!no_colour || !*no_colour) && (!terminal || std::string_view(terminal) != "dumb") &&
         ::isatty(STDOUT_FILENO) == 1;
}

/// Columns of an answer: the terminal's, at most 100, and 100 where there is none.
std::size_t chosen_width() {
  constexpr std::size_t least = 40, most = 100;
  std::size_t width = 0;
  if (const char* given = std::getenv("COLUMNS")) width = static_cast<std::size_t>(std::strtoul(given, nullptr, 10));
  if (winsize size{}; width == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width == 0 ? most : std::clamp(width, least, most);
}

/// Whether the locale's characters are UTF-8, by the first of the usual variables that says so.
bool uses_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* locale = std::getenv(name); locale && *locale) {
      const std::string text(locale);
      return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos ||
             text.find("utf-8") != std::string::npos;
    }
  return false;
}

/// `for_errors` is how to print errors once the request's own options are known.
Result<int> answer(verbs::Request& request, report::RenderOptions& for_errors) {
  ASSAY_CHECK(verbs::apply_config_file(request));
  ASSAY_TRY(format, chosen_format(request));
  const auto output = output_file(request);
  const report::RenderOptions options{.format = format,
                                      .colour = wants_colour(request, output.has_value()),
                                      .explain = request.explain(),
                                      .quiet = request.has("quiet"),
                                      .all = request.has("all"),
                                      .width = chosen_width(),
                                      .utf8 = uses_utf8()};
  for_errors = options;
  if (!request.has("format"))
    for_errors.format = report::Format::table;  // the extension of --output is about that file only
  if (format == report::Format::svg || (format == report::Format::html && request.verb().has_picture))
    request.want_picture();
  hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  for (const std::string& directory : catalogue_directories()) ASSAY_CHECK(catalogue.overlay(directory, "catalogue"));
  if (const auto files = request.value("catalogue")) ASSAY_CHECK(verbs::overlay_catalogue(catalogue, *files));
  // `sweep` asks many requests at once on threads that stay: they may allocate without waiting for each other.
  if (request.verb().name == "sweep") ::mallopt(M_ARENA_MAX, 0);
  // Running programs makes arrays all the time, and new pages cost ten times what a copy does: freed ones are kept, and
  // overlapped movements share the memory of the steps. The heaps of a second arena are given back when empty.
  if (request.verb().name == "run" || request.verb().name == "measure") {
    ::mallopt(M_ARENA_MAX, 1);
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  }
  ASSAY_CHECK(check_places(request));
  Watch watch;
  ASSAY_TRY(response, verbs::ask(request, {catalogue, surroundings()}));
  if (response.is_silent) return 0;
  const std::string text = report::render(response, options);
  watch.end();
  for (const auto& [path, content] : response.files) ASSAY_CHECK(save_extra(request, path, content));
  if (output) {
    ASSAY_CHECK(save(*output, text, "--output"));
  } else if (!write(stdout, text)) {
    return fail("stdout", fmt::format("the output cannot be written: {}", std::strerror(errno)), "");
  }
  return static_cast<int>(response.outcome);
}

/// An error goes to stderr for people, to stdout as JSON for programs.
int print_error(const Error& error, report::RenderOptions options) {
  const bool json = options.format == report::Format::json;
  if (!json) options.colour = options.colour && ::isatty(STDERR_FILENO) == 1;
  write(json ? stdout : stderr, report::render(error, options));
  return exit_code(error);
}

report::Items option_items(std::span<const verbs::OptionSpec> options) {
  report::Items items;
  for (const verbs::OptionSpec& option : options)
    items.emplace_back(report::Members{{"name", option.name}, {"value", option.value}, {"help", option.help}});
  return items;
}

/// The text of help as a response, for programs.
report::Response help_response(const verbs::VerbSpec* verb) {
  report::Response response;
  response.headline = verb ? fmt::format("assay {}: {}", verb->name, verb->summary) : "the commands of assay";
  report::Members& out = response.results;
  if (!verb) {
    report::Items commands;
    for (const verbs::VerbSpec& each : verbs::verbs())
      commands.emplace_back(report::Members{{"name", each.name}, {"summary", each.summary}});
    for (const auto& [name, summary] : verbs::built_in_words())
      commands.emplace_back(report::Members{{"name", name}, {"summary", summary}});
    out.emplace_back("commands", std::move(commands));
  } else {
    report::Items arguments, examples;
    for (const verbs::ArgumentSpec& argument : verb->arguments)
      arguments.emplace_back(report::Members{{"name", argument.name},
                                             {"help", argument.help},
                                             {"required", argument.required},
                                             {"repeatable", argument.repeatable}});
    for (const auto& [command, shows] : verb->examples)
      examples.emplace_back(report::Members{{"command", command}, {"shows", shows}});
    out = {{"command", verb->name},
           {"summary", verb->summary},
           {"description", verb->description},
           {"arguments", std::move(arguments)},
           {"options", option_items(verb->options)},
           {"examples", std::move(examples)}};
  }
  out.emplace_back("common_options", option_items(verbs::common_options()));
  return response;
}

/// Takes --format out of the words, and what it is; without it text is meant.
std::string takes_format(std::vector<std::string>& words) {
  constexpr std::string_view joined = "--format=";
  for (auto word = words.begin(); word != words.end(); ++word) {
    const bool separate = *word == "--format" && word + 1 != words.end();
    if (!separate && !word->starts_with(joined)) continue;
    std::string format = separate ? *(word + 1) : word->substr(joined.size());
    words.erase(word, word + (separate ? 2 : 1));
    return format;
  }
  return "table";
}

/// Words that the program itself answers.
std::optional<int> built_in(std::vector<std::string> words) {
  if (words.size() > 1 && words[0] == "completion" && words[1] == "of") {
    hardware::Catalogue catalogue = hardware::Catalogue::builtin();
    for (const std::string& directory : catalogue_directories()) (void)catalogue.overlay(directory, "catalogue");
    return write(stdout, verbs::completions({words.begin() + 2, words.end()}, catalogue)) ? 0 : exit_input;
  }
  const report::RenderOptions json{.format = report::Format::json};
  const std::string format = takes_format(words);
  const auto say = [&](const std::string& text, const report::Response& response) {
    if (format != "table" && format != "json")
      return print_error({Error::Kind::usage,
                          "--format",
                          fmt::format("this is available as text or json, not as {}", format),
                          "drop it, or use --format json",
                          {}},
                         {});
    return write(stdout, format == "json" ? report::render(response, json) : text) ? 0 : exit_input;
  };
  const std::string first = words.empty() ? "help" : words.front();
  if (first == "--version" || first == "version") {
    report::Response response;
    const About ours = about();
    response.headline = fmt::format("assay {} ({}catalogue of {})", ours.version,
                                    ours.commit.empty() ? "" : fmt::format("commit {}, ", ours.commit), ours.catalogue);
    response.results = {{"version", ours.version}, {"commit", ours.commit}, {"catalogue", ours.catalogue}};
    return say(response.headline + "\n", response);
  }
  const bool help = first == "help" || first == "--help" || first == "-h";
  const bool verb_asks = words.size() > 1 && (std::find(words.begin(), words.end(), "--help") != words.end() ||
                                              std::find(words.begin(), words.end(), "-h") != words.end());
  if (help || verb_asks) {
    const std::string wanted = help ? (words.size() > 1 ? words[1] : "") : first;
    if (const verbs::VerbSpec* command = verbs::built_in_command(wanted); command && format == "table")
      return write(stdout, verbs::verb_help(*command)) ? 0 : exit_input;
    for (const verbs::VerbSpec& verb : verbs::verbs())
      if (verb.name == wanted) return say(verbs::verb_help(verb), help_response(&verb));
    const auto words_of_ours = verbs::built_in_words();
    const bool ours =
        std::any_of(words_of_ours.begin(), words_of_ours.end(), [&](const auto& word) { return word.first == wanted; });
    if (wanted.empty() || ours) {
      const int code = say(verbs::overview_help(), help_response(nullptr));
      return words.empty() && code == 0 ? exit_usage : code;
    }
    return std::nullopt;  // an unknown verb gets its error from the parser
  }
  if (first == "json" || first == "mcp") {
    const verbs::Surroundings here = surroundings();
    Reach reach{true, catalogue_directories(), here.user_catalogue, here.programs, here.date};
    return first == "json" ? answer_lines(std::move(reach)) : serve_tools(std::move(reach));
  }
  if (first == "ui") {
    const auto served = ui::run(std::span(words).subspan(1), catalogue_directories());
    return served ? 0 : print_error(served.error(), {});
  }
  if (first == "schema") {
    const Answer found = schema(words.size() > 1 ? words[1] : "");
    return write(stdout, found.json) ? found.status : exit_input;
  }
  if (first == "completion" || first == "man") {
    const std::string which = words.size() > 1 ? words[1] : "";
    const auto script = first == "man" ? verbs::man_page(which) : verbs::completion_script(which);
    if (!script) return print_error(script.error(), {});
    return write(stdout, *script) ? 0 : exit_input;
  }
  return std::nullopt;
}

/// `options` is how to print errors.
Result<int> run(std::vector<std::string> words, report::RenderOptions& options) {
  if (const auto code = built_in(words)) return *code;
  if (words.front() == "help" || words.front() == "--help" || words.front() == "-h") words.erase(words.begin());
  for (std::size_t i = 0; i < words.size(); ++i)  // a broken command line still answers in the format asked for
    if (words[i] == "--format=json" || (words[i] == "--format" && i + 1 < words.size() && words[i + 1] == "json"))
      options.format = report::Format::json;
  ASSAY_TRY(request, verbs::parse_request(words));
  return answer(request, options);
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 2);  // threads reuse what others freed: searches start many, one after the other
  // What searches free they soon ask for again: given back, each of its pages would be a fault and be zeroed.
  ::mallopt(M_MMAP_THRESHOLD, 16 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
  struct sigaction on_interrupt = {};
  on_interrupt.sa_handler = ask_to_stop;
  on_interrupt.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &on_interrupt, nullptr);
  report::RenderOptions options;
  const auto code = verbs::without_exceptions([&] { return run({argv + 1, argv + argc}, options); });
  const int exit = code ? *code : print_error(code.error(), options);
  return progress.is_stopped() ? exit_interrupted : exit;
}
