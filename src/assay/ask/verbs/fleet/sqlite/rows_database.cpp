#include <fmt/format.h>

#include "assay/ask/verbs/fleet/fleet.h"
#include "assay/base/text.h"

namespace assay::verbs::fleet {

Result<RowSink> database_sink(const std::vector<std::string>& heads, const std::string& file) {
  ASSAY_TRY(made, Database::in_memory(file));
  const auto database = std::make_shared<Database>(std::move(made));  // of both functions
  std::string marks = "?";
  for (std::size_t i = 1; i < heads.size(); ++i) marks += ", ?";
  ASSAY_CHECK(database->run("BEGIN"));
  ASSAY_CHECK(database->run(fmt::format("CREATE TABLE requests ({})", join(heads, ", "))));
  ASSAY_CHECK(database->prepare(fmt::format("INSERT INTO requests VALUES ({})", marks)));
  RowSink sink;
  sink.add = [database](const std::vector<DatabaseCell>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) database->bind(static_cast<int>(i), cells[i]);
    return database->put();
  };
  sink.content = [database]() -> Result<std::string> {
    ASSAY_CHECK(database->run("COMMIT"));
    return database->bytes();
  };
  return sink;
}

}  // namespace assay::verbs::fleet
