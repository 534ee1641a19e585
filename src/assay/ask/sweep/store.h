// The directory of a sweep's rows. A row is there, whole, as soon as it is answered; what a killed process left behind
// is found again.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "assay/ask/sweep/row.h"
#include "assay/base/result.h"

namespace assay::sweep {

class Store {
 public:
  /// Opens the directory, or makes it. `answered_by` is what the numbers depend on: rows of another one are refused.
  /// Each rank of a launch writes a file of its own.
  static Result<std::unique_ptr<Store>> open(const std::string& directory, const std::string& answered_by, int rank);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool has(const std::string& request) const { return places_.contains(request); }
  std::size_t size() const { return places_.size(); }
  /// Several threads may add at once, while nobody reads.
  Result<void> add(const Row& row);
  /// Reads what other ranks have added since.
  Result<void> refresh();

  Result<Row> row(const std::string& request) const;

  /// Puts all rows into one file, those of `requests` first and in their order, and removes what ranks have left.
  Result<void> finish(std::span<const std::string> requests);

  const std::string& directory() const { return directory_; }

 private:
  struct Place {
    std::size_t file = 0;
    std::uint64_t offset = 0, length = 0;
  };
  struct File {
    std::string path;
    std::uint64_t read = 0;  ///< up to here
    int handle = -1;
  };

  explicit Store(std::string directory) : directory_(std::move(directory)) {}
  Result<void> find_files();
  Result<void> read_new_rows(std::size_t file);
  Result<std::string> text(const Place& place) const;
  Error unwritable(const std::string& path) const;

  std::string directory_, own_path_;
  int own_ = -1;
  std::vector<File> files_;
  std::unordered_map<std::string, Place> places_;
  std::mutex guard_;
};

}  // namespace assay::sweep
