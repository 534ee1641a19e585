#include <fmt/format.h>
#include <gtest/gtest.h>

#include "assay/profile/trace/bytes.h"
#include "assay/profile/trace/chrome.h"
#include "assay/profile/trace/readers.h"
#include "assay/testing/test_directory.h"

namespace assay::trace {
namespace {

const Vocabulary& known_names() {
  static const hardware::Catalogue catalogue = hardware::Catalogue::builtin();
  return **vocabulary_of(catalogue);
}

TEST(Kineto, ReadsRanksDevicesAndLaunches) {
  const auto bytes = file_bytes("tests/data/profiles/two-steps.json", "test");
  const auto trace = read_profile(*bytes, "two-steps.json", known_names());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->rank, 0);
  EXPECT_EQ(trace->world_size, 2);
  ASSERT_EQ(trace->devices.size(), 1u);
  EXPECT_EQ(trace->devices[0].name, "NVIDIA H200");
  for (const Event& event : trace->events)
    if (on_device(event.kind)) {
      ASSERT_NE(event.parent, none) << trace->name(event);
      EXPECT_EQ(trace->events[event.parent].correlation, event.correlation);
    }
}

TEST(Kineto, AMappedFileIsLetGoOfBehindTheReader) {
  const testing::TestDirectory directory;
  constexpr int count = 200'000;
  std::string text = "[";
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "{}{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"product\",\"pid\":0,\"tid\":7,\"ts\":{},\"dur\":1,"
        "\"args\":{{\"correlation\":{}}}}}",
        i == 0 ? "" : ",\n", 2 * i, i);
  text += "]";
  directory.write("long.json", text);
  const auto file = MappedFile::open(directory.file("long.json"), "test");
  ASSERT_TRUE(file);
  std::size_t dropped = 0;
  const auto trace = read_profile(file->bytes(), "long.json", known_names(), [&](std::size_t bytes) {
    dropped = bytes;
    file->drop(bytes);
  });
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->events.size(), std::size_t{count});
  EXPECT_EQ(trace->lanes.size(), 1u);
  EXPECT_GT(dropped, std::size_t{1} << 24);
  EXPECT_EQ(file->bytes(), text);  // read again
}

TEST(Kineto, AMappedFileThatIsMissingOrNoFileIsRefused) {
  const testing::TestDirectory directory;
  for (const std::string& path : {directory.file("missing.json"), directory.path()}) {
    const auto file = MappedFile::open(path, "FILE");
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().where, "FILE");
  }
  directory.write("empty.json", "");
  const auto empty = MappedFile::open(directory.file("empty.json"), "FILE");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
}

TEST(Kineto, EveryTruncationIsAnErrorWithItsPlace) {
  const auto bytes = file_bytes("tests/data/profiles/two-steps.json", "test");
  for (std::size_t size = 1; size + 3 < bytes->size(); size += 97) {
    const auto trace = read_profile(std::string_view(*bytes).substr(0, size), "cut.json", known_names());
    ASSERT_FALSE(trace) << size;
    EXPECT_EQ(trace.error().where.substr(0, 9), "cut.json:") << size;
    EXPECT_FALSE(trace.error().hint.empty());
  }
}

TEST(Kineto, GzipIsReadAndItsDamageReported) {
  const auto bytes = file_bytes("tests/data/profiles/llama8b-4l-train.kineto.json.gz", "test");
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(read_profile(*bytes, "x", known_names()));
  const auto cut = read_profile(std::string_view(*bytes).substr(0, bytes->size() / 2), "x", known_names());
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().what.find("too early"), std::string::npos);
  std::string flipped = *bytes;
  flipped[flipped.size() / 2] = static_cast<char>(~flipped[flipped.size() / 2]);
  EXPECT_FALSE(read_profile(flipped, "x", known_names()));
}

TEST(Kineto, OddEventsAreCountedNotGuessed) {
  const auto trace = read_profile(
      R"([{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":1,"dur":-5,"args":{}},
          {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"dur":5,"args":{"stream":null}},
          {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":1.7e15,"dur":5},
          {"name":"no phase"}, 3, null])",
      "odd.json", known_names());
  ASSERT_FALSE(trace);  // an event is an object
  const auto events = read_profile(
      R"([{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":1,"dur":-5,"args":{}},
          {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"dur":5,"args":{"stream":null}},
          {"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":7,"dur":5}])",
      "odd.json", known_names());
  ASSERT_TRUE(events);
  EXPECT_EQ(events->unread, 2);
  EXPECT_EQ(events->events.size(), 1u);
}

TEST(ChromeClock, TimesAreExact) {
  ChromeClock clock;
  EXPECT_EQ(clock.since_origin("3845298533772.788"), 788'000);
  EXPECT_EQ(clock.since_origin("3845298533773.7881234"), 1'788'123);
  EXPECT_EQ(clock.since_origin("3845298533771"), -1'000'000);
  EXPECT_EQ(ChromeClock::length("0.001"), 1'000);
  EXPECT_EQ(ChromeClock::length("1.5e3"), 1'500'000'000);
  EXPECT_FALSE(ChromeClock::length("1e300"));
  EXPECT_FALSE(clock.since_origin("99999999999999999999999"));
}

}  // namespace
}  // namespace assay::trace
