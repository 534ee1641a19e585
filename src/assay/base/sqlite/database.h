// Databases of SQLite: files of others, which are only read, and tables that we write. The only user of the library.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "assay/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay {

/// A row that a query finds; columns count from 0.
class DatabaseRow {
 public:
  explicit DatabaseRow(sqlite3_stmt* statement) : statement_(statement) {}

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

/// What a cell holds.
using DatabaseCell = std::variant<std::monostate, std::int64_t, double, std::string>;

class Database {
 public:
  /// The database in `bytes`, which outlive it and are only read. Errors name `file` and end with `remedy`.
  static Result<Database> of_bytes(std::string_view bytes, std::string_view file, std::string_view remedy);
  /// A new file; what was there is replaced.
  static Result<Database> create(const std::string& path);
  /// A new one in memory, for bytes(); errors name `file`.
  static Result<Database> in_memory(const std::string& file);

  /// The columns that a table has; none where there is no such table.
  Result<std::set<std::string>> columns(const std::string& table);
  /// Calls `visit(row)` for each row that a query finds.
  template <class F>
  Result<void> rows(const std::string& query, F visit) {
    ASSAY_TRY(statement, prepared(query));
    while (true) {
      ASSAY_TRY(found, step(statement.get()));
      if (!found) return {};
      visit(DatabaseRow(statement.get()));
    }
  }

  Result<void> run(const std::string& command);
  /// Keeps a command with a ? for each cell, which put() then runs again and again.
  Result<void> prepare(const std::string& command);
  void bind(int column, const DatabaseCell& cell);
  Result<void> put();
  /// The database as a file has it.
  std::string bytes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  struct Finish {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finish>;

  Database(std::string file, std::string what, std::string remedy)
      : file_(std::move(file)), what_(std::move(what)), remedy_(std::move(remedy)) {}
  Result<Statement> prepared(const std::string& query);
  /// Whether there is a row.
  Result<bool> step(sqlite3_stmt* statement);
  Error failed(std::string_view why) const;
  static int out_of_patience(void* left);

  std::string file_, what_, remedy_;
  std::unique_ptr<std::int64_t> patience_;  // outlives the database, which points to it
  std::unique_ptr<sqlite3, Close> database_;
  Statement kept_;
};

}  // namespace assay
