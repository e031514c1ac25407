// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/tensorboard.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/crc32c.h"
#include "framework/observe/testing/metrics_record.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using testing::timed_record;

template <class T>
T take(const std::string& bytes, std::size_t& at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  at += sizeof(value);
  return value;
}

// Returns the records of a TFRecord file. Expects that both checksums of each record are correct.
std::vector<std::string> records(const std::string& path) {
  const auto unmasked = [](std::uint32_t masked) { return std::rotl(masked - 0xa282ead8u, 15); };
  const std::string file = read_file(path);
  std::vector<std::string> all;
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t begin = at;
    const auto length = take<std::uint64_t>(file, at);
    EXPECT_EQ(unmasked(take<std::uint32_t>(file, at)), crc32c(file.data() + begin, 8));
    all.push_back(file.substr(at, length));
    at += length;
    EXPECT_EQ(unmasked(take<std::uint32_t>(file, at)), crc32c(all.back().data(), length));
  }
  return all;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

class TensorBoardTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = ::testing::TempDir() + "/tensorboard";
};

TEST_F(TensorBoardTest, RecordsAreFramedAndBeginWithTheVersion) {
  TensorBoard board(folder_);
  board.resume_after(299);
  board.add(timed_record());
  ASSERT_THAT(files_in(folder_), SizeIs(1));
  EXPECT_THAT(std::filesystem::path(files_in(folder_)[0]).filename().string(), StartsWith("events.out.tfevents."));
  const auto all = records(files_in(folder_)[0]);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_THAT(all[0], HasSubstr("\x1a\x0d"
                                "brain.Event:2"));
  // Field 2, the first step of this file, is 300. Field 7, the session log, has the status "start".
  EXPECT_THAT(all[1], HasSubstr("\x10\xac\x02\x3a\x02\x08\x01"));
}

TEST_F(TensorBoardTest, AScalarIsATagAndAFloat) {
  EventFile file(folder_, 0);
  file.add(5, {{"t", 0.5}});
  const auto event = records(file.path()).back();
  EXPECT_EQ(event[0], '\x09') << "field 1, a double: the time";
  // Step 5, then a summary of 10 bytes: a value of 8 bytes with tag "t" and the float 0.5.
  EXPECT_EQ(event.substr(9), std::string("\x10\x05\x2a\x0a\x0a\x08\x0a\x01t\x15\0\0\0\x3f", 14));
}

TEST_F(TensorBoardTest, EveryMeasuredValueHasATag) {
  TensorBoard board(folder_);
  board.add(timed_record());
  auto test = timed_record();
  test.split = "test";
  test.learning_rate.reset();
  test.times.reset();
  board.add(test);
  const auto all = records(files_in(folder_)[0]);
  for (const char* tag : {"train/loss", "train/accuracy", "train/samples_per_second", "train/learning_rate",
                          "step_ms/data", "step_ms/communication"}) {
    EXPECT_THAT(all[2], HasSubstr(tag));
  }
  EXPECT_THAT(all[3], AllOf(HasSubstr("test/loss"), Not(HasSubstr("learning_rate")), Not(HasSubstr("step_ms"))));
}

TEST_F(TensorBoardTest, AResumedRunBeginsANewFile) {
  TensorBoard(folder_).add(timed_record());
  TensorBoard(folder_).add(timed_record());
  ASSERT_THAT(files_in(folder_), SizeIs(2));
  for (const auto& file : files_in(folder_)) {
    EXPECT_THAT(records(file)[1], HasSubstr("\x10\x01\x3a\x02\x08\x01")) << "a new file begins, with step 1";
  }
}

TEST_F(TensorBoardTest, AFolderThatCannotBeCreatedIsAnErrorThatNamesTheFile) {
  EXPECT_THAT([] { TensorBoard("/proc/absent").add(timed_record()); },
              ThrowsMessage<DataError>(AllOf(StartsWith("/proc/absent/events"), HasSubstr("cannot be opened"))));
}

}  // namespace
}  // namespace phalanx
