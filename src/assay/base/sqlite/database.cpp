#include "assay/base/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdio>

namespace assay {

bool DatabaseRow::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::int64_t DatabaseRow::integer(int column) const { return sqlite3_column_int64(statement_, column); }

std::string DatabaseRow::text(int column) const {
  const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return value ? std::string(value, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : std::string{};
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }
void Database::Finish::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

/// Called over and over while SQLite works. Reading a table takes some steps for each of its bytes; a file that takes a
/// hundred is made to run for ever.
int Database::out_of_patience(void* left) { return --*static_cast<std::int64_t*>(left) < 0 ? 1 : 0; }

Error Database::failed(std::string_view why) const {
  return {Error::Kind::input, file_, fmt::format("the database cannot be {}: {}", what_, why), remedy_, {}};
}

Result<Database> Database::of_bytes(std::string_view bytes, std::string_view file, std::string_view remedy) {
  Database out{std::string(file), "read", std::string(remedy)};
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE, nullptr);
  out.database_.reset(database);
  if (opened != SQLITE_OK) throw InternalError("SQLite does not start");
  // A file may be made to run for ever, or to write; neither is what data does.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  constexpr int steps_at_once = 100'000;
  out.patience_ = std::make_unique<std::int64_t>(100 + static_cast<std::int64_t>(bytes.size() / 1000));
  sqlite3_progress_handler(database, steps_at_once, &Database::out_of_patience, out.patience_.get());
  auto* content = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // it is only read
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(database, "main", content, size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
    return tl::unexpected<Error>(out.failed("the file is no database"));
  return out;
}

Result<Database> Database::create(const std::string& path) {
  Database out{path, "written", "name a directory that may be written to and has room"};
  std::remove(path.c_str());
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  out.database_.reset(database);
  if (opened != SQLITE_OK) return tl::unexpected<Error>(out.failed(database ? sqlite3_errmsg(database) : "no memory"));
  return out;
}

Result<Database> Database::in_memory(const std::string& file) {
  ASSAY_TRY(out, create(":memory:"));
  out.file_ = file;
  return std::move(out);
}

std::string Database::bytes() const {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> held(
      sqlite3_serialize(database_.get(), "main", &size, 0), &sqlite3_free);
  if (!held) throw InternalError("SQLite has no memory for a copy");
  return {reinterpret_cast<const char*>(held.get()), static_cast<std::size_t>(size)};
}

Result<Database::Statement> Database::prepared(const std::string& query) {
  sqlite3_stmt* made = nullptr;
  const int state = sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &made, nullptr);
  Statement statement(made);
  if (state != SQLITE_OK) return tl::unexpected<Error>(failed(sqlite3_errmsg(database_.get())));
  return statement;
}

Result<bool> Database::step(sqlite3_stmt* statement) {
  const int state = sqlite3_step(statement);
  if (state == SQLITE_DONE) return false;
  if (state != SQLITE_ROW) return tl::unexpected<Error>(failed(sqlite3_errmsg(database_.get())));
  return true;
}

Result<std::set<std::string>> Database::columns(const std::string& table) {
  std::set<std::string> out;
  const std::string query = fmt::format("SELECT t.name FROM pragma_table_info('{}') AS t", table);
  ASSAY_CHECK(rows(query, [&](const DatabaseRow& row) { out.insert(row.text(0)); }));
  return out;
}

Result<void> Database::run(const std::string& command) {
  return rows(command, [](const DatabaseRow&) {});
}

Result<void> Database::prepare(const std::string& command) {
  ASSAY_TRY(statement, prepared(command));
  kept_ = std::move(statement);
  return {};
}

void Database::bind(int column, const DatabaseCell& cell) {
  const int at = column + 1;  // SQLite counts parameters from 1
  if (const auto* integer = std::get_if<std::int64_t>(&cell))
    sqlite3_bind_int64(kept_.get(), at, *integer);
  else if (const auto* number = std::get_if<double>(&cell))
    sqlite3_bind_double(kept_.get(), at, *number);
  else if (const auto* text = std::get_if<std::string>(&cell))
    sqlite3_bind_text64(kept_.get(), at, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  else
    sqlite3_bind_null(kept_.get(), at);
}

Result<void> Database::put() {
  ASSAY_CHECK(step(kept_.get()));
  sqlite3_reset(kept_.get());
  sqlite3_clear_bindings(kept_.get());
  return {};
}

}  // namespace assay
