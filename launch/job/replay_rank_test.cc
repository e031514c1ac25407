// SPDX-License-Identifier: Apache-2.0
#include "launch/job/replay_rank.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/config/check.h"
#include "engine/strategies/strategies.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/secret_file.h"
#include "framework/ps/server/server.h"
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

  // Records a run with each of these changes of the config, and replays all of its ranks that train.
  void replay_each(const std::vector<std::vector<std::string>>& configs, int training = 2, int servers = 0) {
    for (const auto& changes : configs) {
      SCOPED_TRACE(changes.front());
      std::filesystem::remove_all(recording());
      std::filesystem::remove_all(scratch_.path("run"));
      ASSERT_THAT(record_run(training + servers, changes), Each(0));
      for (int rank = 0; rank < training; ++rank) {
        const ReplayResult result = replay(rank);
        EXPECT_EQ(result.ended, "");
        EXPECT_THAT(result.last_step, Gt(1));
      }
    }
  }
};

// Returns the names of the strategies whose ranks exchange everything by operations and through parameter servers.
std::vector<std::string> strategies() {
  return Strategies::global().names_where(
      [](const StrategyTraits& traits) { return !traits.shared_memory && !traits.one_rank; });
}

// Returns what the config must change to use a strategy.
std::vector<std::string> changes_for(const std::string& strategy) {
  const auto without_optimizer =
      Strategies::global().names_where([](const StrategyTraits& traits) { return traits.servers_update; });
  std::vector<std::string> changes{"strategy=" + strategy};
  if (std::ranges::find(without_optimizer, strategy) != without_optimizer.end()) changes.emplace_back("optimizer=sgd");
  return changes;
}

// Returns what the config must change so that a rank serves the rows of embeddings.
std::vector<std::string> served_rows() {
  return {"strategy=all_reduce", "roles.server=1", "train.global_batch_size=16",
          "dataset={name: clicks, train_samples: 160, test_samples: 20, features: 3, keys: 50, dense: 2}",
          "model={name: dlrm, dim: 4, bottom: [8], top: [8], embeddings: {name: servers, scale: 0.1, staleness: 1, "
          "cache_staleness: 1, prefetch: true}}"};
}

class EveryStrategy : public ReplayRank, public ::testing::WithParamInterface<std::string> {};

TEST_P(EveryStrategy, ReplaysBitForBitOnEachRank) {
  ASSERT_THAT(record_run(2, changes_for(GetParam())), Each(0));
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
  replay_each({{"strategy={sharded: {stage: 2}}"},
               {"strategy={sharded: {stage: 3}}"},
               {"strategy={overlapped: {compression: powersgd}}", "model.hidden=[16, 16]"},
               {"mesh.pipe=2", "pipeline.micro_batches=2"},
               {"strategy=all_reduce", "train.data_parallel=2"}});
}

TEST_F(ReplayRank, ReplaysPartsOfLayersSequencesAndExperts) {
  const std::string gpt = "model={name: gpt, layers: 1, heads: 2, width: 8}";
  const std::string experts = "model={name: moe_gpt, layers: 1, heads: 2, width: 8, experts: 4}";
  const std::string tokens =
      "dataset={name: random_tokens, vocabulary: 16, context: 8, train_samples: 24, test_samples: 12}";
  replay_each({{"mesh.tensor=2", gpt, tokens}, {"mesh.context=2", gpt, tokens}, {"mesh.expert=2", experts, tokens}});
}

TEST_F(ReplayRank, ReplaysRanksThatWaitForServersLess) {
  replay_each({{"strategy={downpour: {every: 3, prefetch: 2}}"},
               {"strategy={downpour: {every: 2, server_optimizer: adam}}", "optimizer=sgd"},
               {"strategy={easgd: {every: 2, synchronous: true}}"}});
}

TEST_F(ReplayRank, NeedsNoServers) {
  replay_each({{"strategy=ssp", "roles.server=1"}, served_rows()}, 2, 1);
  EXPECT_THAT([&] { replay(2); }, ThrowsMessage<ConfigError>(AllOf(HasSubstr("rank 2 of 3 was a parameter server"),
                                                                   HasSubstr("replay one of ranks 0 to 1"))));
}

TEST_F(ReplayRank, NeedsNoServersOfOtherJobs) {
  const std::string secret = scratch_.path("secret"), address = "unix:@phalanx-test-" + random_text().substr(0, 16);
  std::ofstream(secret) << "a secret of more than sixteen letters";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  {
    const ps::Server server({.listen = {address}, .secret = read_secret(secret)});
    replay_each({{"strategy=ssp", "roles.servers_at=[\"" + address + "\"]", "roles.secret_file=" + secret}});
  }
  EXPECT_EQ(replay(1).ended, "") << "and the server has ended";
}

TEST_F(ReplayRank, AnotherUpdateForTheServersIsADifference) {
  ASSERT_THAT(record_run(2, {"strategy={ssp: {every: 1}}"}), Each(0));
  EXPECT_THAT(
      [&] { replay(1, {"optimizer.momentum=0.5"}); },
      ThrowsMessage<recording::ReplayDifference>(HasSubstr("the replay differs in step 2: its input of request ")));
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

class TheLastSteps : public ReplayRank, public ::testing::WithParamInterface<std::string> {};

// The tables of servers have what the checkpoint says, so a replay does not give it to them, as a resumed run would.
TEST_P(TheLastSteps, BeginAtACheckpoint) {
  auto changes = changes_for(GetParam());
  changes.insert(changes.end(), {"framework.record_last=3", "checkpoint.every_steps=3", "checkpoint.keep_last=3"});
  ASSERT_THAT(record_run(2, changes), Each(0));
  for (const int rank : {0, 1}) {
    const ReplayResult result = replay(rank);
    EXPECT_EQ(result.ended, "");
    EXPECT_EQ(result.first_step, 6);
    EXPECT_EQ(result.last_step, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, TheLastSteps,
                         ::testing::Values("auto", "sync_ps", "ssp", "downpour", "easgd", "dc_asgd"),
                         [](const auto& info) { return info.param; });

TEST_F(ReplayRank, RowsOnServersBeginAtACheckpointToo) {
  std::vector<std::string> changes = served_rows();
  changes.insert(changes.end(), {"framework.record_last=4", "checkpoint.every_steps=4", "checkpoint.keep_last=3"});
  ASSERT_THAT(record_run(3, changes), Each(0));
  EXPECT_EQ(replay(0).ended, "");
  EXPECT_EQ(replay(1).first_step, 12);
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
