// The native half of the Python module: requests and answers as bytes. Everything else is in assay/__init__.py.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <system_error>
#include <thread>

#include "assay/assay.h"
#include "assay/base/one_of_many.h"
#include "assay/base/progress.h"

namespace py = pybind11;

namespace {

void ask_to_stop(int) { assay::progress.stop.store(true, std::memory_order_relaxed); }

/// While the engine works in Python's main thread, Ctrl-C stops it; what Python does about Ctrl-C it does afterwards.
class Interruptible {
 public:
  Interruptible() : here_(std::this_thread::get_id() == main_thread) {
    if (!here_) return;
    struct sigaction ours = {};
    ours.sa_handler = ask_to_stop;
    ::sigaction(SIGINT, &ours, &theirs_);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  /// With the interpreter's lock: raises what was put off.
  void end() {
    if (!here_) return;
    ::sigaction(SIGINT, &theirs_, nullptr);
    if (!assay::progress.stop.exchange(false)) return;
    PyErr_SetInterrupt();
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }

  static inline std::thread::id main_thread = std::this_thread::get_id();  ///< the one that imports the module

 private:
  bool here_;
  struct sigaction theirs_ = {};
};

py::tuple as_tuple(const assay::Answer& answer) {
  py::list files;
  for (const auto& [path, content] : answer.files) files.append(py::make_tuple(path, py::bytes(content)));
  return py::make_tuple(py::bytes(answer.json), answer.status, files);
}

py::tuple answer_one(const assay::Engine& engine, const std::string& request, bool svg) {
  assay::Answer answer;
  Interruptible interruptible;
  {
    const py::gil_scoped_release released;
    answer = engine.answer(request, svg ? assay::AnswerLayout::svg : assay::AnswerLayout::indented);
  }
  interruptible.end();
  return as_tuple(answer);
}

/// Answers in the order of the requests, by several threads.
py::list answer_all(const assay::Engine& engine, const std::vector<std::string>& requests, std::size_t threads) {
  std::vector<assay::Answer> answers(requests.size());
  Interruptible interruptible;
  {
    const py::gil_scoped_release released;
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      std::optional<assay::OneOfMany> here;
      if (threads > 1) here.emplace();
      for (std::size_t i = next++; i < requests.size() && !assay::progress.is_stopped(); i = next++)
        answers[i] = engine.answer(requests[i]);
    };
    std::vector<std::thread> others;
    try {
      for (std::size_t i = 1; i < std::min(threads, requests.size()); ++i) others.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads are to be had: those that there are do the work.
    }
    work();
    for (std::thread& other : others) other.join();
  }
  interruptible.end();
  py::list out;
  for (const assay::Answer& answer : answers) out.append(as_tuple(answer));
  return out;
}

}  // namespace

PYBIND11_MODULE(_engine, module) {
  py::class_<assay::Engine>(module, "Engine")
      .def(py::init([](std::vector<std::string> catalogues, std::string user_catalogue, std::string programs,
                       std::string date) {
             return assay::Engine(assay::Reach{true, std::move(catalogues), std::move(user_catalogue),
                                               std::move(programs), std::move(date)});
           }),
           py::arg("catalogues"), py::arg("user_catalogue"), py::arg("programs"), py::arg("date"))
      .def("answer", answer_one, py::arg("request"), py::arg("svg"))
      .def("answers", answer_all, py::arg("requests"), py::arg("threads"));
  module.def("about", [] {
    const assay::About ours = assay::about();
    return py::make_tuple(ours.version, ours.commit, ours.catalogue);
  });
}
