// SPDX-License-Identifier: Apache-2.0
// Tests that train.memory_format: channels_last changes only the memory layout of weights.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"
#include "framework/base/storage/safetensors.h"
#include "models/model.h"

namespace phalanx {
namespace {

using testing::Changes;
using ::testing::Each;
using testing::Finished;
using testing::new_folder;
using testing::relative_difference;
using testing::run_tiny;

const Changes kLenet{"model=lenet", "checkpoint.resume=auto", "checkpoint.every_steps=5"};

Changes with(const Changes& more) {
  Changes all = kLenet;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Changes channels_last(const Changes& more) {
  Changes all = with(more);
  all.emplace_back("train.memory_format=channels_last");
  return all;
}

void expect_same_files(const Finished& one, const Finished& other) {
  const auto expected = load_safetensors(one.folder.weights()), got = load_safetensors(other.folder.weights());
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first);
    EXPECT_EQ(got[i].second.sizes(), expected[i].second.sizes());
    EXPECT_LT(relative_difference(got[i].second, expected[i].second), 1e-3) << "in the same order of elements";
  }
}

bool lies_channels_last(const Finished& run, const std::string& parameter) {
  for (const auto& [name, values] : run.results.at(0).model->named_parameters()) {
    if (name == parameter) return values.is_contiguous(at::MemoryFormat::ChannelsLast);
  }
  ADD_FAILURE() << "no " << parameter;
  return false;
}

// Covers optimizers that work on elements, on matrices, and on rows and columns, and shards, which are not cut within
// these.
class ChannelsLast : public ::testing::TestWithParam<const char*> {};

TEST_P(ChannelsLast, FollowsContiguous) {
  const auto contiguous = run_tiny(2, new_folder(), with({GetParam()}));
  const auto last = run_tiny(2, new_folder(), channels_last({GetParam()}));
  ASSERT_THAT(last.errors, Each(""));
  EXPECT_TRUE(lies_channels_last(last, "conv2.weight"));
  EXPECT_FALSE(lies_channels_last(contiguous, "conv2.weight"));
  expect_same_files(contiguous, last);
}

// Steps that follow a checkpoint of the other memory format give the same result: the checkpoint restores weights,
// momentum and all related state in the right order.
TEST_P(ChannelsLast, ResumesFromContiguousAndBack) {
  const auto whole = run_tiny(2, new_folder(), with({GetParam()}));
  const auto folder = new_folder();
  run_tiny(2, folder, with({GetParam(), "train.max_steps=5"}));
  const auto between = run_tiny(2, folder, channels_last({GetParam(), "train.max_steps=10"}));
  EXPECT_THAT(between.began_after, Each(5));
  const auto last = run_tiny(2, folder, with({GetParam()}));
  ASSERT_THAT(last.errors, Each(""));
  EXPECT_THAT(last.began_after, Each(10));
  expect_same_files(whole, last);
}

INSTANTIATE_TEST_SUITE_P(Updates, ChannelsLast,
                         ::testing::Values("optimizer={name: sgd, lr: 0.02, momentum: 0.9}",
                                           "optimizer={name: muon, lr: 0.002}",
                                           "optimizer={name: muon, lr: 0.002, adamw: {match: conv, lr: 0.001}}",
                                           "optimizer={name: adafactor, lr: 0.001, relative_step: false}",
                                           "strategy=sharded", "strategy={name: all_reduce, compression: bf16}"),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(ChannelsLast, ResumesBitForBit) {
  for (const char* strategy : {"strategy=all_reduce", "strategy=sharded", "strategy=local_sgd"}) {
    const auto whole = run_tiny(2, new_folder(), channels_last({strategy}));
    const auto folder = new_folder();
    run_tiny(2, folder, channels_last({strategy, "train.max_steps=5"}));
    const auto rest = run_tiny(2, folder, channels_last({strategy}));
    ASSERT_THAT(rest.errors, Each(""));
    EXPECT_THAT(rest.began_after, Each(5));
    EXPECT_TRUE(at::equal(rest.weights[0], whole.weights[0])) << strategy;
  }
}

}  // namespace
}  // namespace phalanx
