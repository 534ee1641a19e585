#include "assay/ask/report/html.h"

#include <gtest/gtest.h>

namespace assay::report {
namespace {

TEST(Html, ListsAreTablesAndTextIsEscaped) {
  Response response;
  response.headline = "a < b";
  response.results = {{"outer", Members{{"rows", Items{Members{{"name", "<script>"}, {"time", Seconds(2e-6)}},
                                                       Members{{"name", "other"}, {"calls", 3}}}}}}};
  const std::string page = render_html(response);
  EXPECT_NE(page.find("<title>a &lt; b</title>"), std::string::npos);
  EXPECT_NE(page.find("<summary>outer, rows"), std::string::npos);
  EXPECT_NE(page.find("<th><button>calls</button></th>"), std::string::npos);
  EXPECT_NE(page.find("data-v=\"2e-06\""), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;</td>"), std::string::npos);
  for (const char* elsewhere : {"src=", "href=", "@import", "url("}) EXPECT_EQ(page.find(elsewhere), std::string::npos);
}

TEST(Html, AnAnswerWithoutListsHasNoSearch) {
  Response response;
  response.results = {{"time", Seconds(1)}};
  EXPECT_EQ(render_html(response).find("<script>"), std::string::npos);
}

}  // namespace
}  // namespace assay::report
