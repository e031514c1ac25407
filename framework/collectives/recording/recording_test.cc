// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/recording.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/collectives/recording/recorder.h"

namespace phalanx::recording {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class RecordingFiles : public ::testing::Test {
 protected:
  RecordingFiles() : folder_(::testing::TempDir() + "recording_files_" + std::to_string(count_++)) {
    std::filesystem::remove_all(folder_);
  }

  static Header header(std::int64_t last = 0) {
    return {.rank = 1, .ranks = 2, .seed = 7, .backend = "inproc", .config = "seed: 7\n", .last = last};
  }

  static void add(Recorder& recorder, std::uint64_t sequence, std::string_view received) {
    EntryHead head{.sequence = sequence, .input_sum = 5};
    head.set_call({.elements = 3, .op = Op::kAllReduce, .dtype = at::kByte});
    head.flags = kReceived;
    const std::array<std::string_view, 1> parts{received};
    recorder.add(recorder.place(), head, parts);
  }

  // Writes a recording of three operations.
  void write_three() {
    Recorder recorder(folder_, header());
    recorder.add_group({.name = "world", .rank = 1, .size = 2, .ways = 1});
    add(recorder, 1, "abc");
    recorder.begin_step(1);
    add(recorder, 2, "def");
    recorder.end_step(1, 11);
    recorder.begin_step(2);
    add(recorder, 3, "ghi");
    recorder.end_run(2, 12);
  }

  std::string path() const { return file_of(folder_, 1); }

  void change_byte(std::int64_t offset) {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get());
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 4));
  }

  std::string folder_;

 private:
  static inline int count_ = 0;
};

std::string next_of(Recording& recording) {
  const auto next = recording.next({});
  return next ? next->received : "nothing";
}

// An answer is recorded when the rank has waited for it.
TEST_F(RecordingFiles, AnswersOfServersAreInTheOrderOfTheRequests) {
  {
    Recorder recorder(folder_, header());
    recorder.add_group({.name = "world", .rank = 1, .size = 2});
    const auto number = recorder.add_server("server 0");
    for (const std::uint64_t sequence : {3, 1}) {
      const std::string answer = std::to_string(sequence);
      const std::array<std::string_view, 1> parts{answer};
      recorder.add(recorder.place(), {.kind = EntryKind::kAnswer, .sequence = sequence, .group = number}, parts);
    }
  }
  Recording recording(folder_, 1);
  EXPECT_EQ(recording.server(0), "server 0");
  EXPECT_EQ(recording.server(1), std::nullopt);
  const auto first = recording.first_left();
  ASSERT_TRUE(first);
  EXPECT_EQ(describe(*first, recording), "request 1 to server 0, before the first step");
  const Stream answers = Stream::of(*first);
  EXPECT_EQ(recording.find(answers, 1)->received, "1");
  EXPECT_FALSE(recording.find(answers, 2)) << "nobody waited for it";
  EXPECT_EQ(recording.find(answers, 3)->received, "3");
  EXPECT_FALSE(recording.first_left());
}

TEST_F(RecordingFiles, GiveBackWhatWasRecorded) {
  write_three();
  Recording recording(folder_, 1);
  EXPECT_EQ(recording.header().seed, 7);
  EXPECT_EQ(recording.header().config, "seed: 7\n");
  EXPECT_EQ(recording.group(0).name, "world");
  EXPECT_EQ(recording.begins_at(), 0);
  EXPECT_EQ(next_of(recording), "abc");
  const auto second = recording.next({});
  EXPECT_EQ(second->head.step, 1);
  EXPECT_EQ(second->head.call().elements, 3);
  EXPECT_EQ(second->head.call().dtype, at::kByte);
  EXPECT_EQ(recording.first_left()->sequence, 3U);
  EXPECT_EQ(next_of(recording), "ghi");
  EXPECT_EQ(next_of(recording), "nothing");
  EXPECT_EQ(recording.parameters_after(1), 11U);
  EXPECT_EQ(recording.parameters_at_end(), 12U);
}

TEST_F(RecordingFiles, OfAKilledRankEndBeforeTheEntryThatIsTorn) {
  write_three();
  const auto size = std::filesystem::file_size(path());
  const auto last_entry = sizeof(EntryHead) + 8;
  for (const auto cut : {last_entry + 1, last_entry + sizeof(EntryHead), last_entry + sizeof(EntryHead) + 2}) {
    std::filesystem::resize_file(path(), size - cut);
    Recording recording(folder_, 1);
    EXPECT_EQ(next_of(recording), "abc");
    EXPECT_EQ(next_of(recording), "def");
    EXPECT_EQ(next_of(recording), "nothing") << cut;
    EXPECT_FALSE(recording.parameters_at_end());
  }
}

TEST_F(RecordingFiles, WithAFlippedBitAreRefusedWithItsPlace) {
  write_three();
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path()));
  const auto in_last_head = size - 20;
  change_byte(in_last_head);
  EXPECT_THAT([&] { Recording(folder_, 1); },
              ThrowsMessage<DataError>(AllOf(HasSubstr(path() + ": offset "), HasSubstr("damaged"))));
  change_byte(in_last_head);
  change_byte(size - static_cast<std::int64_t>(sizeof(EntryHead)) - 8 - 1);  // the elements of the last operation
  Recording recording(folder_, 1);
  EXPECT_EQ(next_of(recording), "abc");
  EXPECT_EQ(next_of(recording), "def");
  EXPECT_THAT([&] { next_of(recording); }, ThrowsMessage<DataError>(HasSubstr("checksum of 3 bytes is wrong")));
}

TEST_F(RecordingFiles, OfAnotherVersionAreRefused) {
  write_three();
  change_byte(static_cast<std::int64_t>(kMagicBytes) - 2);  // the version
  EXPECT_THAT([&] { Recording(folder_, 1); }, ThrowsMessage<DataError>(HasSubstr("this version of Phalanx can read")));
}

TEST_F(RecordingFiles, ThatEndBeforeTheFirstGroupAreRefused) {
  write_three();
  std::filesystem::resize_file(path(), kMagicBytes + 10);
  EXPECT_THAT([&] { Recording(folder_, 1); }, ThrowsMessage<DataError>(HasSubstr("header")));
}

TEST_F(RecordingFiles, OfOtherRanksDoNotStandIn) {
  write_three();
  EXPECT_THAT(recorded_ranks(folder_), ElementsAre(1));
  EXPECT_THAT([&] { Recording(folder_, 0); },
              ThrowsMessage<ConfigError>(HasSubstr("has no recording of rank 0, only of rank 1")));
  EXPECT_THAT([&] { Recording(folder_ + "/none", 0); }, ThrowsMessage<ConfigError>(HasSubstr("cannot be read")));
}

TEST_F(RecordingFiles, AreNeverOverwritten) {
  write_three();
  EXPECT_THAT([&] { Recorder(folder_, header()); },
              ThrowsMessage<ConfigError>(HasSubstr("has a recording already; name another folder")));
}

TEST_F(RecordingFiles, OfARingHaveTheLastStepsAndWhatCameBeforeTheFirst) {
  {
    Recorder recorder(folder_, header(2));
    recorder.add_group({.name = "world"});
    add(recorder, 1, "set");
    for (std::uint64_t step = 1; step <= 7; ++step) {
      recorder.begin_step(static_cast<std::int64_t>(step));
      add(recorder, step + 1, "of" + std::to_string(step));
    }
  }
  Recording recording(folder_, 1);
  EXPECT_EQ(recording.begins_at(), 4);
  EXPECT_EQ(next_of(recording), "set");
  EXPECT_EQ(next_of(recording), "nothing") << "the operations of the steps follow the checkpoint";
  recording.skip_to_segment();
  EXPECT_EQ(next_of(recording), "of5");
  EXPECT_EQ(next_of(recording), "of6");
  EXPECT_EQ(next_of(recording), "of7");
}

TEST_F(RecordingFiles, OfARingThatIsNotFullBeginAtTheStart) {
  {
    Recorder recorder(folder_, header(4));
    recorder.add_group({.name = "world"});
    add(recorder, 1, "set");
    recorder.begin_step(1);
    add(recorder, 2, "one");
    recorder.begin_step(5);
    add(recorder, 3, "two");
  }
  Recording recording(folder_, 1);
  EXPECT_EQ(recording.begins_at(), 0);
  EXPECT_EQ(next_of(recording), "set");
  EXPECT_EQ(next_of(recording), "one");
  EXPECT_EQ(next_of(recording), "two");
}

}  // namespace
}  // namespace phalanx::recording
