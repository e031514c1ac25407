// SPDX-License-Identifier: Apache-2.0
// Records ranks that compute on devices, which are fake, and replays them.
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/check.h"
#include "framework/base/config/config.h"
#include "framework/base/files.h"
#include "framework/collectives/recording/replay.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "launch/job/replay_rank.h"
#include "launch/testing/launcher_process.h"
#include "launch/testing/thread_ranks.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr const char* kConfig = R"(
seed: 3
backend: inproc
model: {name: mlp, hidden: [8]}
dataset: {name: digits, train_samples: 60, test_samples: 10}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
framework: {bucket_bytes: 1KB}
train: {global_batch_size: 12, epochs: 1, deterministic: true}
evaluate: {every_epochs: 1}
watch: {progress: false, report: false, every_steps: 3}
device: cuda
launch: {ranks: 2}
)";

class DeviceRecording : public ::testing::Test {
 protected:
  std::vector<int> record_run(std::vector<std::string> changes) {
    changes.push_back("framework.record=" + scratch_.path("recording"));
    Job job{.quiet = true};
    config::load_text(job.config, kConfig, "t.yaml", changes);
    check(job.config);
    job.run_dir = scratch_.path("run");
    return testing::run_as_threads(job, RunFolder::create(job.run_dir), 2);
  }

  ReplayResult replay(int rank) {
    auto recorded = std::make_unique<recording::Recording>(scratch_.path("recording"), rank);
    Job job{.quiet = true};
    config::load_text(job.config, recorded->header().config, "recorded", {});
    const RunFolder folder = RunFolder::create(scratch_.path("replay" + std::to_string(rank)));
    return replay_rank(job, std::make_shared<recording::Replay>(std::move(recorded)), folder);
  }

  testing::Scratch scratch_;
};

TEST_F(DeviceRecording, IsReplayedBitForBit) {
  const long before = testing::nccl_calls("ncclAllReduce");
  ASSERT_THAT(record_run({"strategy=overlapped"}), Each(0)) << read_file(scratch_.path("run") + "/logs/rank0.log");
  EXPECT_EQ(testing::nccl_calls("ncclAllReduce"), before) << "everything goes through the memory of the host";
  EXPECT_THAT(read_file(scratch_.path("run") + "/logs/rank1.log"), HasSubstr("computes on cuda:1 of "));
  for (const int rank : {0, 1}) {
    const ReplayResult result = replay(rank);
    EXPECT_EQ(result.ended, "");
    EXPECT_EQ(result.last_step, 5);
    EXPECT_GT(result.operations, 0);
  }
}

TEST_F(DeviceRecording, OfAPipelineHasItsMessages) {
  ASSERT_THAT(record_run({"mesh.pipe=2", "pipeline.micro_batches=2"}), Each(0))
      << read_file(scratch_.path("run") + "/logs/rank0.log");
  for (const int rank : {0, 1}) EXPECT_EQ(replay(rank).ended, "");
}

TEST_F(DeviceRecording, NeedsDeterministicKernels) {
  EXPECT_THAT(record_run({"train.deterministic=false"}), Each(2));
  EXPECT_THAT(read_file(scratch_.path("run") + "/logs/rank0.log"),
              HasSubstr("framework.record needs train.deterministic: true on devices"));
}

}  // namespace
}  // namespace phalanx
