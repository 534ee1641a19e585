// budget ASSAY [--update] [--against OTHER]: what the requests of requests.txt cost, one after the other on one core.
// It fails if one takes more than 1.5 times its budget of time or memory. Times are CPU time over that of a loop which
// does what planners do, so that budgets hold on any machine; the best of some tries, so that they hold on busy ones.
//   --update           writes what is measured into requests.txt
//   --against OTHER    asks another build alike, and prints the ratios of time and memory instead
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr double allowed = 1.5;
constexpr double loop_ms = 10.0;  ///< budgets are milliseconds on a machine where the loop takes this long
constexpr int tries = 2, more_tries = 8;
// What a process takes to start varies more than what it computes.
constexpr double spare_ms = 2.0, spare_mb = 4.0;

double cpu_ms(const rusage& use) {
  const auto ms = [](const timeval& t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(use.ru_utime) + ms(use.ru_stime);
}

/// Divisions and roundings, branches that depend on them, small strings, a hash table and sorting.
double reference_loop() {
  std::unordered_map<std::string, double> known;
  std::vector<double> sorted;
  unsigned state = 1;
  double sum = 0;
  for (int i = 1; i <= 240000; ++i) {
    state = state * 1664525u + 1013904223u;
    const double rows = 1.0 + static_cast<double>(state >> 20), tile = static_cast<double>(16 << (state >> 30));
    const double waves = std::ceil(rows / tile) / 132.0;
    sum += std::max(waves * tile / (rows + 1.0), std::log2(rows)) + std::pow(waves, 0.3);
    if (sum > 1e6) sum -= 1e6;
    if (i % 4 == 0) known["kernel " + std::to_string(state % 512)] += sum;
    if (i % 4 == 1) sorted.push_back(sum);
  }
  std::sort(sorted.begin(), sorted.end());
  return sum + sorted.front() + known.begin()->second;
}

/// The shortest time of the loop so far; called between requests, so that it meets the same disturbances.
double best_loop_ms() {
  static double best = HUGE_VAL;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  volatile double kept = reference_loop();
  (void)kept;
  getrusage(RUSAGE_SELF, &after);
  return best = std::min(best, cpu_ms(after) - cpu_ms(before));
}

struct Cost {
  double ms = HUGE_VAL, mb = HUGE_VAL;
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  while (in >> std::ws && in.peek() != EOF) {
    std::string word;
    if (in.peek() == '\'') {
      in.get();
      std::getline(in, word, '\'');
    } else {
      in >> word;
    }
    words.push_back(word);
  }
  return words;
}

/// One run of a request, its output thrown away. "Does not fit" is an answer.
Cost run(const std::string& program, const std::string& request) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::string> words = words_of(request);
    std::vector<char*> arguments{const_cast<char*>(program.c_str())};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (!std::freopen("/dev/null", "w", stdout)) _exit(127);
    execv(program.c_str(), arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage use{};
  if (child < 0 || wait4(child, &status, 0, &use) != child || !WIFEXITED(status) ||
      (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3)) {
    std::cerr << "budget: no answer to: " << program << ' ' << request << '\n';
    std::exit(2);
  }
  return {cpu_ms(use), static_cast<double>(use.ru_maxrss) / 1024.0};
}
void improve(Cost& best, const Cost& more) {
  best.ms = std::min(best.ms, more.ms);
  best.mb = std::min(best.mb, more.mb);
}

struct Request {
  Cost budget;
  std::string text;  ///< a comment or an empty line if the budget is infinite
};

std::vector<Request> read_requests(const std::string& path) {
  std::ifstream file(path);
  std::vector<Request> requests;
  for (std::string line; std::getline(file, line);) {
    Request request;
    std::istringstream in(line);
    if (!line.empty() && line[0] != '#' && in >> request.budget.ms >> request.budget.mb)
      std::getline(in >> std::ws, request.text);
    else
      request = {{}, line};
    requests.push_back(request);
  }
  return requests;
}
bool is_asked(const Request& request) { return request.budget.ms != HUGE_VAL; }

void print(std::ostream& out, const Cost& cost, const std::string& text) {
  out << std::fixed << std::setprecision(1) << std::setw(8) << cost.ms << std::setw(8) << cost.mb << "  " << text
      << '\n';
}

int compare(const std::string& program, const std::string& other, const std::vector<Request>& requests) {
  std::cout << "      ms    base   ratio      MB   ratio  request\n";
  for (const Request& request : requests) {
    if (!is_asked(request)) continue;
    Cost now, then;
    for (int i = 0; i < tries + 1; ++i) {
      improve(then, run(other, request.text));
      improve(now, run(program, request.text));
    }
    std::printf("%8.1f%8.1f%8.2f%8.1f%8.2f  %s\n", now.ms, then.ms, now.ms / then.ms, now.mb, now.mb / then.mb,
                request.text.c_str());
    std::fflush(stdout);
  }
  return 0;
}

int check(const std::string& program, const std::string& path, std::vector<Request> requests, bool update) {
  int failed = 0;
  for (Request& request : requests) {
    if (!is_asked(request)) continue;
    Cost cost;
    const auto scaled = [&] { return Cost{cost.ms * loop_ms / best_loop_ms(), cost.mb}; };
    const auto is_over = [&] {
      const Cost now = scaled();
      return now.ms > allowed * request.budget.ms + spare_ms || now.mb > allowed * request.budget.mb + spare_mb;
    };
    const int most = update ? tries : tries + more_tries;
    for (int i = 0; i < tries || (i < most && is_over()); ++i) improve(cost, run(program, request.text));
    if (update) {
      request.budget = scaled();
    } else if (is_over()) {
      ++failed;
      const Cost now = scaled();
      std::printf("%.1f ms and %.1f MB, budget %.1f ms and %.1f MB: assay %s\n", now.ms, now.mb, request.budget.ms,
                  request.budget.mb, request.text.c_str());
    }
  }
  if (update) {
    std::ofstream out(path);
    for (const Request& request : requests)
      if (is_asked(request))
        print(out, request.budget, request.text);
      else
        out << request.text << '\n';
  }
  std::printf("%d requests over their budget; CONTRIBUTING.md says how to renew it\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  const auto has = [&](const char* word) { return std::find(given.begin(), given.end(), word); };
  if (given.empty()) {
    std::cerr << "usage: budget ASSAY [--update] [--against OTHER]\n";
    return 2;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  setenv("HOME", "/nonexistent", 1);  // nothing of a person's own
  const std::string path = "tests/budget/requests.txt";
  const std::vector<Request> requests = read_requests(path);
  if (const auto against = has("--against"); against != given.end() && against + 1 != given.end())
    return compare(given[0], against[1], requests);
  return check(given[0], path, requests, has("--update") != given.end());
}
