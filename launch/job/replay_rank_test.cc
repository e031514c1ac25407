// SPDX-License-Identifier: Apache-2.0
#include "launch/job/replay_rank.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/config/check.h"
#include "engine/strategies/strategies.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/testing/worlds.h"
#include "launch/testing/recorded_run.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kConfig = R"(
seed: 3
backend: inproc
model: {name: mlp, hidden: [8]}
dataset: {name: digits, train_samples: 60, test_samples: 10}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
framework: {bucket_bytes: 1KB}
train: {global_batch_size: 12, epochs: 2}
evaluate: {every_epochs: 1}
watch: {progress: false, report: false, every_steps: 3}
device: cpu
)";

class ReplayRank : public testing::RecordedRun {
 protected:
  ReplayRank() : RecordedRun(kConfig) {}
};

// Returns the names of the strategies whose ranks exchange everything by operations, and of none.
std::vector<std::string> strategies() {
  return Strategies::global().names_where([](const StrategyTraits& traits) {
    return !traits.shared_memory && !traits.parameter_servers && !traits.one_rank;
  });
}

class EveryStrategy : public ReplayRank, public ::testing::WithParamInterface<std::string> {};

TEST_P(EveryStrategy, ReplaysBitForBitOnEachRank) {
  ASSERT_THAT(record_run(2, {"strategy=" + GetParam()}), Each(0));
  for (const int rank : {0, 1}) {
    const ReplayResult result = replay(rank);
    EXPECT_EQ(result.ended, "");
    EXPECT_EQ(result.first_step, 0);
    EXPECT_EQ(result.last_step, 10);
    EXPECT_THAT(result.operations, Gt(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryStrategy, ::testing::ValuesIn(strategies()),
                         [](const auto& info) { return info.param; });

TEST_F(ReplayRank, ReplaysShardsPipelinesAndThreads) {
  const std::vector<std::vector<std::string>> configs{
      {"strategy={sharded: {stage: 2}}"},
      {"strategy={sharded: {stage: 3}}"},
      {"strategy={overlapped: {compression: powersgd}}", "model.hidden=[16, 16]"},
      {"mesh.pipe=2", "pipeline.micro_batches=2"},
      {"strategy=all_reduce", "train.data_parallel=2"}};
  for (std::size_t i = 0; i < configs.size(); ++i) {
    SCOPED_TRACE(configs[i].front());
    std::filesystem::remove_all(recording());
    std::filesystem::remove_all(scratch_.path("run"));
    ASSERT_THAT(record_run(2, configs[i]), Each(0));
    for (const int rank : {0, 1}) EXPECT_EQ(replay(rank).ended, "");
  }
}

TEST_F(ReplayRank, SaysHowLargeTheRecordingIs) {
  ASSERT_THAT(record_run(2, {}), Each(0));
  const auto summary = parse_json(read_file(scratch_.path("run") + "/summary.json"), "summary.json");
  const double said = summary.get<JsonValue>("recording").get<double>("bytes");
  double real = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recording())) real += entry.file_size();
  EXPECT_GT(said, 10000);
  EXPECT_LE(said, real);
  EXPECT_GT(said, 0.8 * real) << "only what follows the summary is missing";
}

TEST_F(ReplayRank, BeginsAtACheckpointIfOnlyTheLastStepsWereKept) {
  ASSERT_THAT(record_run(2, {"framework.record_last=2", "checkpoint.every_steps=2", "checkpoint.keep_last=3"}),
              Each(0));
  for (const int rank : {0, 1}) {
    const ReplayResult result = replay(rank);
    EXPECT_EQ(result.ended, "");
    EXPECT_EQ(result.first_step, 6);
    EXPECT_EQ(result.last_step, 10);
  }
}

TEST_F(ReplayRank, StopsWhereAnotherConfigMakesADifference) {
  ASSERT_THAT(record_run(2, {"strategy=all_reduce"}), Each(0));
  EXPECT_THAT([&] { replay(1, {"optimizer.momentum=0.5"}); },
              ThrowsMessage<recording::ReplayDifference>(HasSubstr("in step 2")));
  EXPECT_THAT([&] { replay(1, {"seed=4"}); },
              ThrowsMessage<recording::ReplayDifference>(HasSubstr("the replay differs")));
}

TEST_F(ReplayRank, StopsAfterAStep) {
  ASSERT_THAT(record_run(2, {}), Each(0));
  const ReplayResult part = replay(1, {}, 4);
  EXPECT_TRUE(part.stopped);
  EXPECT_EQ(part.last_step, 4);
  const ReplayResult whole = replay(1, {}, 100);
  EXPECT_FALSE(whole.stopped);
  EXPECT_EQ(whole.last_step, 10);
  EXPECT_LT(part.operations, whole.operations);
}

TEST_F(ReplayRank, RecordsOnlyTheRanksThatItIsAskedTo) {
  ASSERT_THAT(record_run(2, {"framework.record_ranks=[1]"}), Each(0));
  EXPECT_EQ(replay(1).last_step, 10);
  EXPECT_THAT([&] { replay(0); }, ThrowsMessage<ConfigError>(HasSubstr("no recording of rank 0, only of rank 1")));
}

TEST_F(ReplayRank, RefusesRanksThatDoNotExist) {
  EXPECT_THAT(record_run(2, {"framework.record_ranks=[2]"}), Each(2));
  EXPECT_THAT(read_file(scratch_.path("run") + "/logs/rank0.log"), HasSubstr("there is no rank 2"));
}

TEST_F(ReplayRank, ARankThatFailsIsReplayedUpToItsFailure) {
  // The recording of a rank that was killed ends in the middle.
  ASSERT_THAT(record_run(2, {}), Each(0));
  const std::string file = recording::file_of(recording(), 1);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const ReplayResult result = replay(1);
  EXPECT_THAT(result.ended, HasSubstr("the recording ends in step"));
  EXPECT_GT(result.last_step, 1);
  EXPECT_LT(result.last_step, 10);
}

}  // namespace
}  // namespace phalanx
