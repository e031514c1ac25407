// SPDX-License-Identifier: Apache-2.0
#include "phalanx/distributed_sampler.h"

#include <gtest/gtest.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using Batches = std::vector<std::vector<std::size_t>>;

Batches epoch_of(DistributedSampler& sampler, std::size_t batch_size) {
  Batches batches;
  while (auto batch = sampler.next(batch_size)) batches.push_back(*std::move(batch));
  return batches;
}

Batches epoch_of(std::size_t samples, int rank, int ranks, std::size_t batch_size,
                 const DistributedSamplerOptions& options = {}) {
  DistributedSampler sampler(samples, rank, ranks, options);
  return epoch_of(sampler, batch_size);
}

std::vector<std::size_t> sorted(std::vector<std::size_t> all) {
  std::ranges::sort(all);
  return all;
}

TEST(DistributedSampler, RanksTakeTogetherWhatOneProcessTakes) {
  const auto alone = epoch_of(24, 0, 1, 6, {.seed = 3});
  ASSERT_EQ(alone.size(), 4u);
  Batches together(4);
  for (int rank = 0; rank < 3; ++rank) {
    const auto own = epoch_of(24, rank, 3, 2, {.seed = 3});
    ASSERT_EQ(own.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) together[i].insert(together[i].end(), own[i].begin(), own[i].end());
  }
  EXPECT_EQ(together, alone);
}

TEST(DistributedSampler, AllRanksGetTheSameNumberOfBatchesOfTheSameSizes) {
  for (const std::size_t samples : {1, 5, 7, 23, 24, 25}) {
    std::vector<std::size_t> all;
    for (int rank = 0; rank < 3; ++rank) {
      const auto own = epoch_of(samples, rank, 3, 4);
      const auto first = epoch_of(samples, 0, 3, 4);
      ASSERT_EQ(own.size(), first.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(own[i].size(), first[i].size());
        all.insert(all.end(), own[i].begin(), own[i].end());
      }
    }
    EXPECT_LE(all.size(), samples + 2) << "a sample twice on two of the ranks at most";
    all = sorted(std::move(all));
    all.erase(std::unique(all.begin(), all.end()), all.end());
    EXPECT_EQ(all.size(), samples);
  }
}

TEST(DistributedSampler, DropsWhatDoesNotFillABatch) {
  const auto batches = epoch_of(25, 1, 3, 4, {.shuffle = false, .drop_last = true});
  EXPECT_EQ(batches, (Batches{{4, 5, 6, 7}, {16, 17, 18, 19}}));
}

TEST(DistributedSampler, EachResetBeginsTheNextEpoch) {
  DistributedSampler sampler(30, 0, 2);
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 0) << "a data loader resets it before the first epoch, too";
  const auto first = epoch_of(sampler, 5);
  sampler.reset();
  EXPECT_EQ(sampler.epoch(), 1);
  const auto second = epoch_of(sampler, 5);
  EXPECT_NE(first, second);
  sampler.set_epoch(0);
  EXPECT_EQ(epoch_of(sampler, 5), first);
}

TEST(DistributedSampler, GoesOnWhereItWasSaved) {
  DistributedSampler sampler(30, 1, 2);
  sampler.set_epoch(4);
  sampler.next(5);
  std::stringstream file;
  torch::serialize::OutputArchive saved;
  sampler.save(saved);
  saved.save_to(file);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  DistributedSampler restored(30, 1, 2);
  restored.load(archive);
  restored.reset();
  EXPECT_EQ(restored.epoch(), 4);
  EXPECT_EQ(epoch_of(restored, 5), epoch_of(sampler, 5));
  restored.reset();
  EXPECT_EQ(restored.epoch(), 5);
}

TEST(DistributedSampler, RefusesWhatDoesNotFit) {
  EXPECT_THROW(DistributedSampler(0, 0, 1), std::invalid_argument);
  EXPECT_THROW(DistributedSampler(1, 2, 2), std::invalid_argument);
  DistributedSampler sampler(30, 0, 2);
  EXPECT_THROW(sampler.next(0), std::invalid_argument);
  sampler.next(5);
  EXPECT_THROW(sampler.next(4), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
