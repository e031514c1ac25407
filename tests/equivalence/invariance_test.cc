// SPDX-License-Identifier: Apache-2.0
// Tests determinism: world_size_invariant. Losses and weights must be equal bit for bit on 1, 2 and 4 ranks.
#include <gmock/gmock.h>

#include <bit>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
using ::testing::ThrowsMessage;
using testing::train;
using testing::training_config;

std::vector<std::string> changes_for(const std::string& model) {
  std::vector<std::string> changes{"model=" + model,          "determinism=world_size_invariant",
                                   "launch.threads=1",        "train.virtual_shards=4",
                                   "train.clip_norm=1",       "watch.every_steps=1",
                                   "evaluate.every_epochs=1", "train.max_steps=20"};
  // The model's batch norm has buffers; the last batch of an epoch has fewer samples than there are shards.
  if (model == "resnet18") {
    changes.insert(changes.end(), {"dataset.train_samples=11", "dataset.test_samples=6", "train.global_batch_size=8",
                                   "train.epochs=2", "evaluate.global_batch_size=6"});
  }
  return changes;
}

// Returns every metric in metrics.jsonl, with all digits.
std::string losses_in(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  std::string all;
  for (std::string line; std::getline(file, line);) {
    const auto measured = nlohmann::json::parse(line);
    all += measured["split"].get<std::string>() + " " + measured["step"].dump() + ": " + measured["loss"].dump() + " " +
           measured["accuracy"].dump() + "\n";
  }
  return all;
}

// Returns the losses and a digest of the weights. Ranks are forked, so this process must not have threads; rank 0
// passes its result through a file.
std::string fingerprint(const std::vector<std::string>& changes, int ranks, const std::string& run,
                        int stop_after = -1) {
  const std::string found = ::testing::TempDir() + "/" + run + ".found";
  run_ranks("shm", ranks, [&](const CommunicatorPtr& world) {
    int steps = 0;
    const auto trained = train(training_config(changes), world, run, [&] { return ++steps == stop_after; });
    std::uint64_t digest = 0;
    const auto* bits = static_cast<const std::uint32_t*>(trained.weights.const_data_ptr());
    for (std::int64_t i = 0; i < trained.weights.numel(); ++i) digest = std::rotl(digest, 5) * 31 + bits[i];
    if (world->rank() == 0) std::ofstream(found) << losses_in(trained.folder) << "weights " << digest << "\n";
  });
  std::ifstream file(found);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Invariance : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, Invariance, ::testing::Values("mlp", "lenet", "resnet18", "dropout_under_test"),
                         [](const auto& info) { return info.param; });

TEST_P(Invariance, LossesAndWeightsHaveTheSameBitsOnAnyNumberOfRanks) {
  const auto changes = changes_for(GetParam());
  const std::string one = fingerprint(changes, 1, GetParam() + "1");
  EXPECT_THAT(one, HasSubstr("train 2: "));
  EXPECT_THAT(one, HasSubstr("test "));
  for (const int ranks : {2, 4}) {
    EXPECT_EQ(fingerprint(changes, ranks, GetParam() + std::to_string(ranks)), one) << ranks << " ranks";
  }
}

TEST(InvarianceOption, ExpertsThatCountOverSequencesHaveTheSameBits) {
  const std::string text = ::testing::TempDir() + "/text_for_experts.txt";
  std::ofstream file(text);
  for (int i = 0; i < 1200; ++i) file << static_cast<char>('a' + (i * i / 7 + i / 3) % 10);
  file.close();
  auto changes = changes_for("{name: moe_gpt, layers: 1, heads: 2, width: 8, experts: 4, count_over: sequence}");
  changes.insert(changes.end(), {"model.balance=0.5", "model.capacity_factor=1", "train.max_steps=4",
                                 "train.global_batch_size=12", "dataset={name: text, file: " + text + ", context: 8}"});
  EXPECT_EQ(fingerprint(changes, 1, "experts1"), fingerprint(changes, 2, "experts2"));
}

// The result equals the training of one process without shards. Models with batch norm would differ, because it sees
// each shard separately.
TEST(InvarianceOption, TrainsAsOneProcess) {
  run_ranks("shm", 1, [](const CommunicatorPtr& world) {
    auto changes = changes_for("smooth_under_test");
    const auto sharded = train(training_config(changes), world, "sharded");
    changes.push_back("determinism=run");
    const auto plain = train(training_config(changes), world, "plain");
    EXPECT_LT(testing::relative_difference(sharded.weights, plain.weights), 1e-5);
  });
}

// A run that starts on one rank and continues on two equals a run on four ranks.
TEST(InvarianceOption, ARunMayResumeOnOtherRanks) {
  for (const std::string model : {"lenet", "dropout_under_test"}) {
    auto changes = changes_for(model);
    const std::string whole = fingerprint(changes, 4, model + "_whole");
    fingerprint(changes, 1, model + "_moved", /*stop_after=*/9);
    changes.push_back("checkpoint.resume=auto");
    const std::string rest = fingerprint(changes, 2, model + "_moved");
    const auto last_lines = [](const std::string& text) { return text.substr(text.find("train 11: ")); };
    EXPECT_EQ(last_lines(rest), last_lines(whole)) << model;
  }
}

// Dropout affects the losses that are compared above.
TEST(InvarianceOption, DropoutHasAnEffect) {
  const auto losses = [](const std::string& change, const std::string& run) {
    auto changes = changes_for("dropout_under_test");
    changes.push_back(change);
    return fingerprint(changes, 2, run);
  };
  EXPECT_NE(losses("model.dropout=0.5", "dropped"), losses("model.dropout=0", "whole"));
}

// Without the option the bits differ, so the test above would notice an error.
TEST(InvarianceOption, WithoutItBitsDependOnTheRanks) {
  auto changes = changes_for("mlp");
  changes.push_back("determinism=run");
  EXPECT_NE(fingerprint(changes, 1, "plain1"), fingerprint(changes, 2, "plain2"));
}

TEST(InvarianceOption, NamesSettingsThatCannotBeCombinedWithIt) {
  const auto config = training_config({"determinism=world_size_invariant", "strategy=sharded", "launch.ranks=3",
                                       "backend=inproc", "train.accumulate=2", "train.data_parallel=2"});
  EXPECT_THAT(
      [&] { check(config); },
      ThrowsMessage<ConfigError>(AllOf(
          HasSubstr("strategy: must be all_reduce or auto, without options"), HasSubstr("launch.threads: must be set"),
          HasSubstr("train.virtual_shards: 8 cannot be divided among launch.ranks: 3"), HasSubstr("backend: inproc"),
          HasSubstr("train.accumulate: must be 1"), HasSubstr("train.data_parallel: must be 1"))));
}

}  // namespace
}  // namespace phalanx
