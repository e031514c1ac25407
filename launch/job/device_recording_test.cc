// SPDX-License-Identifier: Apache-2.0
// Records ranks that compute on devices, which are fake, and replays them.
#include <gmock/gmock.h>

#include "framework/base/files.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "launch/testing/recorded_run.h"

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
)";

class DeviceRecording : public testing::RecordedRun {
 protected:
  DeviceRecording() : RecordedRun(kConfig) {}
};

TEST_F(DeviceRecording, IsReplayedBitForBit) {
  const long before = testing::nccl_calls("ncclAllReduce");
  ASSERT_THAT(record_run(2, {"strategy=overlapped"}), Each(0)) << read_file(scratch_.path("run") + "/logs/rank0.log");
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
  ASSERT_THAT(record_run(2, {"mesh.pipe=2", "pipeline.micro_batches=2"}), Each(0))
      << read_file(scratch_.path("run") + "/logs/rank0.log");
  for (const int rank : {0, 1}) EXPECT_EQ(replay(rank).ended, "");
}

TEST_F(DeviceRecording, NeedsDeterministicKernels) {
  EXPECT_THAT(record_run(2, {"train.deterministic=false"}), Each(2));
  EXPECT_THAT(read_file(scratch_.path("run") + "/logs/rank0.log"),
              HasSubstr("framework.record needs train.deterministic: true on devices"));
}

}  // namespace
}  // namespace phalanx
