// SPDX-License-Identifier: Apache-2.0
// Compares pipelines of stages with training in one process: the same losses and the same weights, with each schedule,
// on meshes with other axes, and from each other's checkpoints. Linked with one backend at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/check.h"
#include "engine/config/experiment_config.h"
#include "framework/base/error.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx::testing {
namespace {

using Case = MeshCase;

class Pipelines : public OnMesh {};

INSTANTIATE_TEST_SUITE_P(
    Meshes, Pipelines,
    ::testing::Values(Case{"mlp", 2, "pipe: 2", "auto"}, Case{"mlp", 3, "pipe: 3", "auto"},
                      Case{"gpt", 2, "pipe: 2", "auto"}, Case{"gpt", 4, "pipe: 4", "auto"},
                      Case{"lenet", 2, "pipe: 2", "auto"}, Case{"gpt", 4, "data: 2, pipe: 2", "overlapped"},
                      Case{"gpt", 4, "data: 2, pipe: 2", "sharded"}, Case{"gpt", 6, "data: 3, pipe: 2", "all_reduce"},
                      Case{"gpt", 4, "tensor: 2, pipe: 2", "auto"}, Case{"mlp", 4, "tensor: 2, pipe: 2", "auto"},
                      Case{"gpt", 8, "data: 2, tensor: 2, pipe: 2", "sharded"},
                      Case{"llama", 4, "tensor: 2, pipe: 2", "auto"}, Case{"bert", 2, "pipe: 2", "auto"},
                      Case{"lstm", 3, "pipe: 3", "auto"}, Case{"siamese", 3, "pipe: 3", "auto"},
                      Case{"gpt", 4, "context: 2, pipe: 2", "auto"},
                      Case{"gpt", 4, "tensor: 2, pipe: 2, sequence_parallel: true", "auto"},
                      Case{"gpt", 8, "tensor: 2, context: 2, pipe: 2, sequence_parallel: true", "all_reduce"}));

TEST_P(Pipelines, TrainsAsOneProcess) { expect_equals_one_rank({"seed=2"}); }

// The norm counts each parameter once, even if two stages have it.
TEST_P(Pipelines, TrainsAsOneProcessWithClippingAndAverages) {
  expect_equals_one_rank({"train.clip_norm=0.1", "train.ema_decay=0.9"});
}

TEST(PipelineSchedules, ComputeTheSame) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const char* micro_batches : {"1", "3", "6"}) {
      expect_equals_one_rank("gpt", 2,
                             {"mesh.pipe=2", std::string("pipeline.schedule=") + schedule,
                              std::string("pipeline.micro_batches=") + micro_batches, "strategy=auto"},
                             {"seed=2", "train.max_steps=6"});
    }
  }
  for (const char* schedule : {"zb_h1", "zero_bubble", "zero_bubble, memory_limit: 3", "dualpipe"}) {
    expect_equals_one_rank(
        "gpt", 2,
        {"mesh.pipe=2", std::string("pipeline={micro_batches: 4, schedule: ") + schedule + "}", "strategy=auto"},
        {"seed=2", "train.max_steps=6"});
  }
  expect_equals_one_rank("gpt", 2,
                         {"mesh.pipe=2", "pipeline={schedule: interleaved, stages_per_rank: 2}", "strategy=auto"},
                         {"seed=2", "train.max_steps=6"});
  expect_equals_one_rank(
      "gpt", 4, {"mesh={data: 2, pipe: 2}", "pipeline={schedule: dualpipe, micro_batches: 4}", "strategy=sharded"},
      {"seed=2", "train.max_steps=6", "train.clip_norm=0.1"});
}

TEST(PipelineOptions, DifferOnlyByRoundingInSinglePrecision) {
  const Changes both{"train.precision=fp32", "train.clip_norm=0.1"};
  expect_equals_one_rank("gpt", 4, {"mesh={data: 2, pipe: 2}", "strategy=sharded"}, both, 1e-4);
  expect_equals_one_rank("mlp", 2, {"mesh.pipe=2", "strategy=auto"}, both, 1e-4);
}

TEST(PipelineOptions, ActivationsMayBeRecomputedAndDroppedOut) {
  expect_equals_one_rank("gpt", 2, {"mesh.pipe=2", "strategy=auto"},
                         {"train.checkpoint_activations=2", "model.dropout=0.3", "train.max_steps=6"});
}

// Several micro-batches are in flight at once.
TEST(PipelineOptions, ExpertsThatCountOverSequencesTrainAsOneProcess) {
  for (const char* options : {"model.capacity_factor=0", "model.capacity_factor=0.75"}) {
    for (const char* mesh : {"mesh={expert: 2, pipe: 2}", "mesh={data: 2, pipe: 2}"}) {
      expect_equals_one_rank("moe", 4, {mesh, "pipeline.micro_batches=3", "strategy=all_reduce"},
                             {options, "model.balance=0.5", "model.count_over=sequence", "train.max_steps=8"});
    }
  }
}

TEST(PipelineOptions, ExpertsThatCountOverBatchesRefuseMicroBatches) {
  expect_refused(2, "moe", {"mesh.pipe=2", "pipeline.micro_batches=2"},
                 "pipeline.micro_batches: 2 computes a batch in parts, but balance of model moe_gpt depends on where");
  expect_refused(2, "moe", {"mesh.pipe=2", "pipeline.micro_batches=2", "model.balance=0", "model.capacity_factor=1"},
                 "but capacity_factor of model moe_gpt");
}

// The last stage has no experts.
TEST(PipelineOptions, StagesMayHaveExperts) {
  for (const char* mesh : {"mesh={expert: 2, pipe: 2}", "mesh={data: 2, pipe: 2}"}) {
    expect_equals_one_rank("moe", 4, {mesh, "pipeline.micro_batches=1", "pipeline.cut=[head]", "strategy=all_reduce"},
                           {"train.clip_norm=0.1", "train.max_steps=8"});
  }
}

// The layers with experts wait for all ranks of a stage, while a vote of all stages is in progress.
TEST(PipelineOptions, StagesWithExpertsDoNotWaitForVotesThatOthersHaveNotCast) {
  expect_equals_one_rank(
      "moe", 4, {"mesh={data: 2, pipe: 2}", "pipeline.micro_batches=1", "pipeline.cut=[head]", "strategy=all_reduce"},
      {"watch.nan_guard.every_steps=1", "train.max_steps=8"});
}

TEST(PipelineOptions, StagesMayBeNamed) {
  expect_equals_one_rank("gpt", 2, {"mesh.pipe=2", "pipeline.cut=[head]", "strategy=auto"}, {"train.max_steps=4"});
}

// There are as many micro-batches as samples, and the last batch has fewer samples.
TEST(PipelineOptions, BatchesMayHaveFewerRowsThanMicroBatches) {
  expect_equals_one_rank("mlp", 2, {"mesh.pipe=2", "pipeline.micro_batches=12", "strategy=auto"},
                         {"train.max_steps=6"});
}

// The first of two tensor ranks has the bias of the second layer, whose cost would move the cut.
TEST(PipelineOptions, RanksWithPartsOfDifferentCostCutTheModelAtTheSamePlaces) {
  expect_equals_one_rank("mlp", 4, {"mesh={tensor: 2, pipe: 2}", "strategy=auto"},
                         {"model={name: mlp, hidden: [8, 6]}", "train.max_steps=6",
                          "dataset={name: spirals, classes: 3, train_samples: 60, test_samples: 12}"});
}

// Some micro-batches consist of padding only, from which batch norm learns nothing, while the gradients of others still
// have to be computed.
TEST(PipelineOptions, BatchNormGoesWithFewerRowsThanMicroBatches) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const auto trained =
        train(config_of("mlp", {"model={name: resnet18, width: 16}", "mesh.pipe=2", "train.max_steps=2",
                                "dataset={name: random_images, channels: 1, side: 10, classes: 4, train_samples: 18, "
                                "test_samples: 5}"}),
              world, file_name("norms_of_padding"));
    EXPECT_TRUE(std::isfinite(trained.test.at(0).second));
  });
}

double metric(const Trained& trained, const std::string& name) {
  const auto found = std::ranges::find(trained.metrics, name, &Metrics::value_type::first);
  return found == trained.metrics.end() ? -1 : found->second;
}

TEST(PipelineMemory, OneForwardOneBackwardHoldsNoMoreMicroBatchesThanStages) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const auto live = [&](const std::string& schedule) {
      const auto trained = train(config_of("gpt", {"mesh.pipe=2", "train.max_steps=2",
                                                   "pipeline={micro_batches: 6, schedule: " + schedule + "}"}),
                                 world, file_name("live"));
      return metric(trained, "pipeline_live_micro_batches");
    };
    EXPECT_EQ(live("1f1b"), 2);
    EXPECT_EQ(live("gpipe"), 6);
    EXPECT_EQ(live("zero_bubble"), 2);
    const auto most = live("zero_bubble, memory_limit: 3");
    EXPECT_LE(most, 3);
    EXPECT_GT(most, 2) << "the ranks use the memory that they are allowed";
  });
}

// A run that changes its mesh on the way, twice, equals a run that does not.
TEST(PipelineCheckpoints, ResumeOnEveryMesh) {
  const std::vector<std::vector<RunPart>> journeys{
      {{1, {"strategy=single"}}, {2, {"mesh.pipe=2"}}, {4, {"mesh={data: 2, pipe: 2}", "strategy=sharded"}}},
      {{2, {"mesh.pipe=2"}}, {2, {"mesh.tensor=2"}}, {3, {"mesh.pipe=3"}}},
      {{4, {"mesh={tensor: 2, pipe: 2}"}}, {2, {"mesh.pipe=2"}}, {1, {"strategy=single"}}},
  };
  for (const char* kind : {"gpt", "mlp"}) {
    for (std::size_t number = 0; number < journeys.size(); ++number) {
      expect_resumed_equals_one_rank(kind, std::to_string(number), journeys[number]);
    }
  }
}

// Compression keeps its state by bucket, and each stage has different buckets.
TEST(PipelineCheckpoints, ResumeOnOtherRanksWithCompressedGradients) {
  int steps = 0;
  for (const int replicas : {2, 3, 2}) {
    steps += 5;
    const Changes changes{"mesh={data: " + std::to_string(replicas) + ", pipe: 2}",
                          "strategy={name: all_reduce, compression: powersgd}",
                          "train.precision=fp32",
                          "checkpoint.every_steps=5",
                          std::string("checkpoint.resume=") + (steps > 5 ? "auto" : "none"),
                          "train.max_steps=" + std::to_string(steps)};
    run_ranks(kBackend, 2 * replicas, [&](const CommunicatorPtr& world) {
      train(config_of("gpt", changes), world, file_name("compressed_journey"));
    });
  }
}

TEST(PipelineErrors, NameWhatDoesNotFit) {
  expect_refused(4, "mlp", {"mesh.pipe=4"}, "has 3 blocks (fc1, fc2, fc3), but 4 stages need one each");
  expect_refused(2, "gpt", {"mesh.pipe=2", "pipeline.cut=[transformer.h.7]"},
                 "\"transformer.h.7\" is not a block of the model; its blocks are embedding, transformer.h.0");
  expect_refused(2, "gpt", {"mesh.pipe=2", "pipeline.cut=[embedding]"}, "leaves the stage before it without blocks");
  expect_refused(2, "gpt", {"mesh.pipe=2", "pipeline.cut=[transformer.h.0, head]"},
                 "names the first blocks of 2 stages, but the number of stages after the first is 1");
  expect_refused(2, "gpt", {"mesh.pipe=2", "pipeline.stages_per_rank=2"}, "1f1b has one stage for each rank");
  expect_refused(3, "gpt", {"mesh.pipe=2"}, "data: 1 times pipe: 2 is 2, but 3 ranks train; {data: 3, pipe: 1} fits");
}

std::string complaint(Changes changes) {
  changes.insert(changes.end(), {"launch.ranks=2", "mesh.pipe=2"});
  try {
    check(config_of("gpt", changes));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineErrors, SettingsThatCannotBeCombinedAreFoundBeforeRanksStart) {
  EXPECT_EQ(complaint({}), "");
  for (const auto& [change, part] : std::vector<std::pair<std::string, std::string>>{
           {"train.accumulate=2", "train.accumulate: must be 1 with mesh.pipe above 1"},
           {"train.sync_batch_norm=true", "train.sync_batch_norm: must be false with mesh.pipe above 1"},
           {"train.data_parallel=2", "train.data_parallel"},
           {"loader.shares=measured", "loader.shares: must be equal with mesh.pipe above 1"},
           {"strategy=hogwild", "strategy: hogwild has ranks that write into the same parameters"},
           {"determinism=world_size_invariant", "determinism: world_size_invariant cannot be combined"}}) {
    EXPECT_NE(complaint({change}).find(part), std::string::npos) << complaint({change});
  }
}

}  // namespace
}  // namespace phalanx::testing
