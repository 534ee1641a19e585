#include "assay/lab/measure/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace assay::measure {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::int64_t whole(std::string_view text, std::int64_t missing = 0) {
  std::int64_t value = missing;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "32768K" or "32M", as /sys writes sizes.
Bytes size_of(const std::string& text) {
  const auto number = static_cast<double>(whole(text));
  return text.ends_with('M') ? number * 1_MiB : text.ends_with('K') ? number * 1_KiB : Bytes(number);
}

/// Bits of "ff,00000003" or the numbers of "0-3,8": how many allowed processors a list names.
std::set<int> processors(const std::string& list) {
  std::set<int> found;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    const auto first = whole(part), last = dash == std::string::npos ? first : whole(part.substr(dash + 1));
    for (std::int64_t i = first; i <= last && i < first + 4096; ++i) found.insert(static_cast<int>(i));
  }
  return found;
}

/// The processors on which the scheduler lets this process run.
std::set<int> allowed() {
  std::set<int> found;
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) found.insert(i);
#endif
  if (found.empty()) found.insert(0);
  return found;
}

int vector_bits(const std::string& flags) {
  const auto has = [&](const char* flag) {
    return (" " + flags + " ").find(std::string(" ") + flag + " ") != std::string::npos;
  };
  return has("avx512f") ? 512 : has("avx") || has("avx2") ? 256 : 128;
}

void read_cpuinfo(const std::string& root, Machine& machine) {
  std::ifstream in(root + "/proc/cpuinfo");
  std::string name, maker, part;
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
    if (key == "model name" && name.empty()) name = value;
    if (key == "CPU implementer") maker = value;
    if (key == "CPU part") part = value;
    if (key == "flags" || key == "Features") machine.vector_bits = vector_bits(value);
  }
  machine.processor = !name.empty() ? name : !part.empty() ? "implementer " + maker + ", part " + part : "processor";
}

void read_topology(const std::string& root, const std::set<int>& mine, Machine& machine) {
  std::set<std::string> cores;
  for (const int cpu : mine) {
    const std::string topology = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string siblings = first_line(topology + "thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  machine.threads = static_cast<int>(mine.size());
  machine.cores = static_cast<int>(cores.size());
}

void read_caches(const std::string& root, const std::set<int>& mine, Machine& machine) {
  const std::string cpu = root + "/sys/devices/system/cpu/cpu" + std::to_string(*mine.begin()) + "/cache/index";
  const int per_core = std::max(1, machine.threads / std::max(1, machine.cores));
  for (int index = 0; index < 8; ++index) {
    const std::string place = cpu + std::to_string(index) + "/";
    const std::string type = first_line(place + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    int sharing = 0;
    for (const int i : processors(first_line(place + "shared_cpu_list"))) sharing += static_cast<int>(mine.count(i));
    machine.caches.push_back({static_cast<int>(whole(first_line(place + "level"), 1)),
                              size_of(first_line(place + "size")), std::max(1, sharing / per_core)});
  }
  std::erase_if(machine.caches, [](const Cache& cache) { return !(cache.size > Bytes(0)); });
  std::sort(machine.caches.begin(), machine.caches.end(),
            [](const Cache& a, const Cache& b) { return a.level < b.level; });
}

std::string bytes_text(Bytes bytes) { return std::to_string(static_cast<std::int64_t>(bytes.value())); }

}  // namespace

Machine read_machine(const std::string& root) {
  Machine machine;
  const std::set<int> mine = allowed();
  read_cpuinfo(root, machine);
  read_topology(root, mine, machine);
  read_caches(root, mine, machine);
  std::ifstream memory(root + "/proc/meminfo");
  for (std::string line; std::getline(memory, line);)
    if (line.starts_with("MemTotal:"))
      machine.memory = static_cast<double>(whole(line.substr(line.find_first_of("0123456789")))) * 1_KiB;
  return machine;
}

Facts facts_of(const Machine& machine) {
  Facts facts{{"processor", machine.processor},
              {"cores", std::to_string(machine.cores)},
              {"threads", std::to_string(machine.threads)},
              {"vector bits", std::to_string(machine.vector_bits)},
              {"memory bytes", bytes_text(machine.memory)}};
  for (const Cache& cache : machine.caches)
    facts.emplace_back("cache " + std::to_string(cache.level),
                       bytes_text(cache.size) + " bytes, shared by " + std::to_string(cache.cores));
  return facts;
}

Machine machine_of(const Facts& facts) {
  Machine machine;
  machine.processor = fact(facts, "processor");
  machine.cores = static_cast<int>(std::clamp<std::int64_t>(whole(fact(facts, "cores"), 1), 1, 1 << 20));
  machine.threads = static_cast<int>(std::clamp<std::int64_t>(whole(fact(facts, "threads"), 1), 1, 1 << 20));
  machine.vector_bits = static_cast<int>(std::clamp<std::int64_t>(whole(fact(facts, "vector bits"), 128), 32, 1 << 16));
  machine.memory = Bytes(static_cast<double>(whole(fact(facts, "memory bytes"))));
  for (int level = 1; level <= 4; ++level) {
    const std::string text = fact(facts, "cache " + std::to_string(level));
    const std::size_t by = text.find("by ");
    if (whole(text) > 0)
      machine.caches.push_back({level, Bytes(static_cast<double>(whole(text))),
                                by == std::string::npos ? 1
                                                        : static_cast<int>(std::clamp<std::int64_t>(
                                                              whole(text.substr(by + 3), 1), 1, 1 << 20))});
  }
  return machine;
}

std::string fact(const Facts& facts, std::string_view key) {
  for (const auto& [name, value] : facts)
    if (name == key) return value;
  return {};
}

}  // namespace assay::measure
