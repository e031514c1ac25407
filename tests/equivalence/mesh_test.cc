// SPDX-License-Identifier: Apache-2.0
// Compares every mesh with training in one process: the same losses and the same weights, also with options that affect
// the update of a sharded model, and from each other's checkpoints. Linked with one backend at a time.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx::testing {
namespace {

using Case = MeshCase;

class Mesh : public OnMesh {};

INSTANTIATE_TEST_SUITE_P(
    Tensor, Mesh,
    ::testing::Values(Case{"gpt", 2, "tensor: 2", "auto"}, Case{"gpt", 4, "tensor: 4", "auto"},
                      Case{"gpt", 4, "tensor: 2", "all_reduce"}, Case{"gpt", 4, "tensor: 2", "overlapped"},
                      Case{"gpt", 4, "tensor: 2", "sharded"}, Case{"llama", 4, "tensor: 2", "sharded"},
                      Case{"bert", 4, "tensor: 2", "overlapped"}, Case{"transformer", 4, "tensor: 2", "sharded"},
                      Case{"vit", 2, "tensor: 2", "auto"}, Case{"vit_b_16", 2, "tensor: 2", "auto"},
                      Case{"mlp", 2, "tensor: 2", "auto"}, Case{"lenet", 2, "tensor: 2", "auto"},
                      Case{"vgg11", 4, "tensor: 2", "overlapped"}, Case{"lstm", 3, "data: 3", "overlapped"},
                      Case{"mlp", 3, "tensor: 3", "auto"}, Case{"mlp", 6, "tensor: 3", "sharded"},
                      Case{"siamese", 2, "tensor: 2", "auto"}));

INSTANTIATE_TEST_SUITE_P(Expert, Mesh,
                         ::testing::Values(Case{"moe", 2, "data: 2", "auto"}, Case{"moe", 2, "expert: 2", "auto"},
                                           Case{"moe", 4, "expert: 4", "all_reduce"},
                                           Case{"moe", 4, "expert: 2", "overlapped"},
                                           Case{"moe", 4, "expert: 2", "sharded"},
                                           Case{"moe", 4, "expert: 2", "{sharded: {one_copy: true}}"},
                                           Case{"moe", 4, "tensor: 2, expert: 2", "all_reduce"},
                                           Case{"moe", 8, "data: 2, tensor: 2, expert: 2", "sharded"}));

INSTANTIATE_TEST_SUITE_P(Context, Mesh,
                         ::testing::Values(Case{"gpt", 2, "context: 2", "auto"},
                                           Case{"gpt", 4, "context: 4", "all_reduce"},
                                           Case{"gpt", 4, "data: 2, context: 2", "overlapped"},
                                           Case{"gpt", 4, "tensor: 2, context: 2", "sharded"},
                                           Case{"moe", 4, "expert: 2, context: 2", "all_reduce"}));

INSTANTIATE_TEST_SUITE_P(
    SequenceParallel, Mesh,
    ::testing::Values(Case{"gpt", 2, "tensor: 2, sequence_parallel: true", "auto"},
                      Case{"gpt", 4, "tensor: 4, sequence_parallel: true", "all_reduce"},
                      Case{"gpt", 4, "data: 2, tensor: 2, sequence_parallel: true", "overlapped"},
                      Case{"gpt", 4, "tensor: 2, context: 2, sequence_parallel: true", "sharded"},
                      Case{"gpt", 4, "tensor: 4, sequence_parallel: true, async_tensor: true", "auto"},
                      Case{"llama", 4, "data: 2, tensor: 2, sequence_parallel: true, async_tensor: true", "sharded"},
                      Case{"llama", 4, "tensor: 2, context: 2, sequence_parallel: true", "auto"}));

// The dataset provides the noise, so it does not depend on the ranks.
INSTANTIATE_TEST_SUITE_P(Generative, Mesh,
                         ::testing::Values(Case{"vae", 3, "data: 3", "overlapped"},
                                           Case{"dcgan", 2, "data: 2", "all_reduce"},
                                           Case{"dcgan", 3, "data: 3", "sharded"}));

// The exported model has dropout.
INSTANTIATE_TEST_SUITE_P(Exported, Mesh,
                         ::testing::Values(Case{"exported", 2, "data: 2", "overlapped"},
                                           Case{"exported", 3, "data: 3", "sharded"}));

INSTANTIATE_TEST_SUITE_P(TorchScript, Mesh,
                         ::testing::Values(Case{"torchscript", 2, "data: 2", "overlapped"},
                                           Case{"torchscript", 2, "data: 2", "sharded"}));

constexpr const char *kStage2 = "{sharded: {stage: 2}}", *kStage3 = "{sharded: {stage: 3}}";
INSTANTIATE_TEST_SUITE_P(Stages, Mesh,
                         ::testing::Values(Case{"gpt", 2, "data: 2", kStage2}, Case{"mlp", 3, "data: 3", kStage2},
                                           Case{"gpt", 4, "tensor: 2", kStage2}, Case{"moe", 4, "expert: 2", kStage2},
                                           Case{"gpt", 4, "data: 4", kStage3}, Case{"mlp", 3, "data: 3", kStage3},
                                           Case{"gpt", 4, "tensor: 2", kStage3}, Case{"moe", 4, "expert: 2", kStage3},
                                           Case{"moe", 2, "data: 2", kStage3}, Case{"siamese", 3, "data: 3", kStage3}));

TEST_P(Mesh, TrainsAsOneProcess) { expect_equals_one_rank({"seed=2"}); }

TEST_P(Mesh, TrainsAsOneProcessWithClippingAndAverages) {
  // Experts balance the tokens that are computed at once, and batch norm uses their mean.
  const auto& kind = std::get<0>(GetParam());
  const bool at_once = kind == "moe" || kind == "dcgan";
  expect_equals_one_rank(
      {at_once ? "train.accumulate=1" : "train.accumulate=2", "train.clip_norm=0.1", "train.ema_decay=0.9"});
}

// The last batch has 3 of the 168 samples. Ranks have unequal shares of it, and fewer samples than parts.
TEST(MeshOptions, ExpertsThatCountOverSequencesTrainAsOneProcess) {
  const Changes sequences{"model.count_over=sequence", "model.balance=0.5", "train.global_batch_size=33"};
  expect_equals_one_rank("moe", 2, {"mesh.data=2", "train.accumulate=4", "strategy=auto"}, sequences);
  expect_equals_one_rank("moe", 2, {"mesh.expert=2", "train.accumulate=4", "strategy=auto"}, sequences);
  expect_equals_one_rank("moe", 2, {"mesh.context=2", "strategy=auto"}, sequences);
  expect_equals_one_rank("moe", 2, {"mesh.data=2", "train.accumulate=3", "strategy=auto"},
                         {"model.count_over=sequence", "model.balance=0.5", "model.capacity_factor=0.75"});
}

// The last batch has 3 of the 168 samples, so one of the ranks computes a row of padding.
TEST(MeshOptions, ExpertsDoNotCountPadding) {
  for (const char* capacity : {"model.capacity_factor=0", "model.capacity_factor=0.5"}) {
    expect_equals_one_rank("moe", 4, {"mesh.data=4", "strategy=auto"},
                           {capacity, "model.balance=0.5", "train.global_batch_size=33"});
  }
}

TEST(MeshOptions, ExpertsThatCountOverBatchesCannotComputeThemInParts) {
  const char* const reason = "computes a batch in parts, but balance of model moe_gpt";
  for (const char* parts : {"train.accumulate=2", "train.data_parallel=2"}) expect_refused(1, "moe", {parts}, reason);
  expect_refused(1, "moe", {"strategy=all_reduce", "launch.threads=1", "determinism=world_size_invariant"}, reason);
  expect_refused(1, "moe", {"train.accumulate=2", "model.balance=0", "model.capacity_factor=1"},
                 "but capacity_factor of model moe_gpt");
}

// The parts of a matrix are gathered from all ranks, and with ZeRO on the rank that updates it.
TEST(MeshOptions, MuonUpdatesWholeMatrices) {
  const Changes muon{"optimizer={name: muon, lr: 0.01, weight_decay: 0.1}", "train.clip_norm=0.1"};
  expect_equals_one_rank("gpt", 2, {"mesh.tensor=2", "strategy=auto"}, muon);
  for (const char* strategy : {"all_reduce", "sharded", "{sharded: {stage: 2}}", "{sharded: {stage: 3}}"}) {
    expect_equals_one_rank("gpt", 4, {"mesh.tensor=2", std::string("strategy=") + strategy}, muon);
  }
  expect_equals_one_rank("mlp", 3, {"mesh.tensor=3", "strategy=auto"}, muon);
  expect_equals_one_rank("moe", 2, {"mesh.expert=2", "strategy=auto"}, muon);
  expect_equals_one_rank("moe", 4, {"mesh={tensor: 2, expert: 2}", "strategy=sharded"}, muon);
}

TEST(MeshOptions, ActivationsMayBeRecomputed) {
  for (const char* axis : {"mesh.tensor=2", "mesh.context=2", "mesh={tensor: 2, sequence_parallel: true}",
                           "mesh={tensor: 2, sequence_parallel: true, async_tensor: true}"}) {
    expect_equals_one_rank("gpt", 2, {axis, "strategy=auto"}, {"train.checkpoint_activations=2"});
  }
}

// Ranks have 3 or 2 of 10 classes; some meters need all classes, some only one.
TEST(MeshOptions, ShardedLogitsGiveTheLossesAndMetersOfWholeLogits) {
  const std::string meters =
      "meters=[{meter: loss}, {meter: accuracy}, {meter: {name: class_error, k: 3}}, {meter: confusion}]";
  const Changes both{"loss={name: cross_entropy, label_smoothing: 0.1}", "evaluate." + meters, "watch." + meters};
  expect_equals_one_rank("gpt", 4, {"mesh.tensor=4", "strategy=auto"}, both);
  expect_equals_one_rank("gpt", 4, {"mesh={tensor: 2, context: 2}", "strategy=auto"}, both);
}

TEST(MeshOptions, DifferOnlyByRoundingInSinglePrecision) {
  const Changes both{"train.precision=fp32", "train.clip_norm=0.1"};
  expect_equals_one_rank("gpt", 4, {"mesh.tensor=2", "strategy=sharded"}, both, 1e-4);
  expect_equals_one_rank("gpt", 2, {"mesh.context=2", "strategy=auto"}, both, 1e-4);
  expect_equals_one_rank("mlp", 3, {"mesh.tensor=3", "strategy=auto"}, both, 1e-4);
  expect_equals_one_rank("moe", 2, {"mesh.expert=2", "strategy=auto"}, both, 1e-4);
}

// Dropout depends on the row only, whichever rank, part of a batch or thread computes it, and however often.
TEST(MeshOptions, DropoutBelongsToTheRowsOfTheGlobalBatch) {
  const std::string dropout = "model.dropout=0.3";
  expect_equals_one_rank("gpt", 3, {"strategy=all_reduce"}, {dropout, "train.checkpoint_activations=2"});
  expect_equals_one_rank("gpt", 2, {"strategy=all_reduce", "train.data_parallel=2"}, {dropout, "seed=3"});
  expect_equals_one_rank("gpt", 4, {"mesh.tensor=2", "strategy=sharded"}, {dropout, "train.accumulate=2"});
  expect_equals_one_rank("bert", 2, {"mesh.tensor=2", "strategy=auto"}, {dropout, "model.attention_dropout=0.3"});
  expect_equals_one_rank("vgg11", 2, {"mesh.tensor=2", "strategy=auto"}, {dropout, "train.max_steps=8"});
  for (const char* kind : {"vit", "vit_b_16"}) {
    expect_equals_one_rank(kind, 2, {"mesh.tensor=2", "strategy=auto"}, {dropout, "model.attention_dropout=0.3"});
  }
  expect_equals_one_rank("lstm", 2, {"strategy=all_reduce"}, {dropout});
  expect_equals_one_rank("gpt", 4, {"mesh={context: 2, tensor: 2, sequence_parallel: true}", "strategy=auto"},
                         {dropout, "seed=3"});
}

TEST(MeshOptions, DropoutChangesWhatIsLearned) {
  run_ranks(kBackend, 1, [](const CommunicatorPtr& world) {
    const auto weights = [&](const std::string& dropout) {
      return train(config_of("gpt", {dropout, "strategy=single"}), world, file_name(dropout)).weights;
    };
    EXPECT_FALSE(at::equal(weights("model.dropout=0.3"), weights("model.dropout=0")));
  });
}

TEST(MeshOptions, APlanInTheConfigTrainsAsOneProcess) {
  expect_equals_one_rank(
      "vgg11_bn", 3,
      {"mesh.tensor=3",
       "plan=[{layers: features.0, style: column_gathered}, {layers: features.8, style: column_gathered}]",
       "strategy=auto"},
      {"train.max_steps=8"});
  expect_equals_one_rank("mlp", 2, {"mesh.tensor=2", "plan=[{layers: fc2, style: column_gathered}]", "strategy=auto"},
                         {"seed=2"});
  expect_equals_one_rank("gpt", 2,
                         {"mesh.tensor=2",
                          "plan=[{layers: \"transformer.h.*.mlp.c_fc\", style: column}, {layers: "
                          "\"transformer.h.*.mlp.c_proj\", style: row}]",
                          "strategy=auto"},
                         {"seed=2"});
}

// A run that changes its mesh on the way equals a run that does not.
TEST(MeshCheckpoints, ResumeOnEveryMesh) {
  const char* const kWhole = "mesh={data: 0}";
  const std::vector<std::vector<RunPart>> every_kind{
      {{1, {"strategy=single"}}, {4, {"mesh.tensor=2", "strategy=sharded"}}, {4, {"mesh.tensor=4"}}},
      {{4, {"mesh.tensor=2", "strategy=sharded"}}, {2, {"mesh.tensor=2"}}, {2, {"strategy=all_reduce"}}},
      {{4, {"mesh.tensor=4"}}, {1, {"strategy=single"}}, {4, {"mesh.tensor=2"}}},
      {{4, {kWhole, "strategy={sharded: {stage: 3}}"}},
       {1, {"strategy=single"}},
       {3, {kWhole, "strategy={sharded: {stage: 3}}"}}},
      {{4, {kWhole, "strategy={sharded: {stage: 3}}"}},
       {2, {"strategy=sharded"}},
       {4, {"mesh.tensor=2", "strategy={sharded: {stage: 3}}"}}},
      {{4, {"mesh.tensor=2", "strategy={sharded: {stage: 3}}"}},
       {2, {kWhole, "strategy={sharded: {stage: 3}}"}},
       {2, {"strategy={sharded: {stage: 2}}"}}},
  };
  const std::vector<RunPart> over_sequences{
      {4, {"mesh={tensor: 2, context: 2}", "strategy=sharded"}}, {2, {"mesh.context=2"}}, {1, {"strategy=single"}}};
  for (const char* kind : {"gpt", "mlp", "moe"}) {
    auto journeys = every_kind;
    if (kind == std::string("gpt")) journeys.push_back(over_sequences);
    for (std::size_t number = 0; number < journeys.size(); ++number) {
      for (auto& leg : journeys[number]) {
        if (const auto at = leg.changes[0].find("tensor"); at != std::string::npos && kind == std::string("moe")) {
          leg.changes[0].replace(at, 6, "expert");
        }
      }
      expect_resumed_equals_one_rank(kind, std::to_string(number), journeys[number]);
    }
  }
}

// Muon's momentum is sharded like the matrices.
TEST(MeshCheckpoints, ResumeOnEveryMeshWithMuon) {
  const std::string muon = "optimizer={name: muon, lr: 0.01}";
  expect_resumed_equals_one_rank("gpt", "muon",
                                 {{2, {"mesh.tensor=2", "strategy=auto", muon}},
                                  {2, {"mesh={data: 0}", "strategy=sharded", muon}},
                                  {4, {"mesh.tensor=2", muon}}},
                                 {"strategy=single", muon});
}

// Replicas differ in each part of the model.
TEST(MeshCheckpoints, RestoreReplicasThatHadDiverged) {
  const Changes local{"mesh.tensor=2", "strategy={local_sgd: {every: 4}}", "checkpoint.every_steps=6"};
  run_ranks(kBackend, 4, [&](const CommunicatorPtr& world) {
    auto half = local, rest = local, whole = local;
    half.push_back("train.max_steps=6");
    rest.push_back("train.max_steps=12");
    rest.push_back("checkpoint.resume=auto");
    whole.push_back("train.max_steps=12");
    train(config_of("gpt", half), world, "gpt_apart");
    const auto resumed = train(config_of("gpt", rest), world, "gpt_apart");
    const auto expected = train(config_of("gpt", whole), world, "gpt_apart_whole");
    EXPECT_EQ(relative_difference(resumed.weights, expected.weights), 0) << "the weights must have the same bits";
  });
}

// ---- settings that do not fit

TEST(MeshErrors, NameWhatDoesNotFit) {
  expect_refused(3, "gpt", {"mesh.tensor=2"},
                 "data: 1 times tensor: 2 is 2, but 3 ranks train; {data: 3, tensor: 1} fits");
  expect_refused(3, "gpt", {"mesh.tensor=3"},
                 "c_attn has 4 heads, which cannot be divided among mesh.tensor: 3; use one of 1, 2, 4");
  expect_refused(2, "gpt", {"mesh.tensor=2", "plan=[{layers: h.0.attn.c_attn, style: column}]"},
                 "plan: \"h.0.attn.c_attn\" matches no layer of the model");
  expect_refused(
      2, "gpt", {"mesh.tensor=2", "plan=[{layers: \"*.c_fc\", style: column}, {layers: \"*.0.mlp.c_fc\", style: row}]"},
      "both match the layer transformer.h.0.mlp.c_fc");
  expect_refused(2, "gpt", {"mesh.tensor=2", "plan=[{layers: transformer.ln_f, style: row}]"}, "cannot be divided");
  expect_refused(2, "gpt", {"mesh.tensor=2", "plan=[{layers: transformer.wte, style: row}]"},
                 "can only be divided by vocabulary");
  expect_refused(2, "mlp", {"mesh.tensor=2", "plan=[{layers: fc1, style: column}]"},
                 "plan: the model cannot be computed with its layers divided in this way");
  expect_refused(2, "exported", {"mesh.tensor=2", "plan=[{layers: fc1, style: column}]"},
                 "plan: \"fc1\": the layers of model exported cannot be divided");
  expect_refused(2, "gpt", {"mesh.tensor=2", "optimizer={name: lamb, lr: 0.01}"}, "needs whole parameters");
  expect_refused(2, "moe", {"mesh.expert=2", "optimizer={name: lamb, lr: 0.01}"},
                 "mesh.expert: optimizer lamb needs whole");
  expect_refused(2, "gpt", {"mesh.expert=2"}, "model gpt has no experts");
  expect_refused(3, "moe", {"mesh.expert=3"}, "h.0.mlp has 4 experts, which cannot be divided among mesh.expert: 3");
  expect_refused(2, "mlp", {"mesh.tensor=2", "model={name: vgg11_bn}", "dataset.side=32"},
                 "model vgg11_bn has no plan of its own");
  expect_refused(
      2, "mlp",
      {"mesh.tensor=2", "model=mobilenet_v2", "dataset.side=32", "plan=[{layers: features.1.conv.0.0, style: column}]"},
      "is a convolution of 32 groups, which cannot be divided");
  expect_refused(4, "llama", {"mesh.tensor=4"}, "k_proj has 2 heads, which cannot be divided among mesh.tensor: 4");
  expect_refused(3, "gpt", {"mesh.context=2"},
                 "data: 1 times context: 2 is 2, but 3 ranks train; {data: 3, context: 1} fits");
  expect_refused(3, "gpt", {"mesh.context=3"},
                 "samples have 16 positions, which 3 ranks cannot divide into two equal chunks each (6 in all); use "
                 "samples of 18 positions, or mesh.context: 2");
  expect_refused(2, "gpt", {"mesh={tensor: 2, sequence_parallel: true}", "dataset.context=17"},
                 "samples have 17 positions, which mesh.tensor: 2 ranks cannot divide equally; use samples of 18");
  for (const char* kind : {"mlp", "moe"}) {
    expect_refused(2, kind, {"mesh={tensor: 2, sequence_parallel: true}"}, "has no positions that ranks could divide");
  }
  expect_refused(2, "mlp", {"mesh.context=2"}, "in which every position has an input and a class number");
  expect_refused(2, "gpt", {"mesh.context=2", "model.attention=explicit"}, "use attention: sdpa");
  expect_refused(2, "moe", {"mesh.context=2", "model.capacity_factor=2"}, "capacity_factor drops the last tokens");
}

}  // namespace
}  // namespace phalanx::testing
