// SPDX-License-Identifier: Apache-2.0
#include "datasets/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "datasets/batch_memory.h"

namespace phalanx {
namespace {

// Sample i is the number i. Records the seeds that gather() gets.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    seeds.push_back(seed);
    const auto rows = static_cast<std::int64_t>(indices.size());
    ensure(batch.inputs, 0, {rows}, at::kLong);
    ensure(batch.targets, 0, {rows}, at::kLong);
    std::ranges::copy(indices, batch.inputs[0].data_ptr<std::int64_t>());
    std::ranges::copy(indices, batch.targets[0].data_ptr<std::int64_t>());
  }

  mutable std::vector<std::uint64_t> seeds;

 private:
  std::int64_t size_;
  SampleSpec spec_;
};

std::unique_ptr<Loader> loader(std::int64_t samples, const BatchSampler::Options& options) {
  return make_loader(std::make_shared<Numbers>(samples), options);
}

// Returns the valid samples of all remaining batches of the epoch.
std::vector<std::int64_t> drain(Loader& loader) {
  std::vector<std::int64_t> all;
  for (Batch batch; loader.next(batch);) {
    const auto* rows = batch.inputs[0].data_ptr<std::int64_t>();
    all.insert(all.end(), rows, rows + batch.valid);
  }
  return all;
}

TEST(Loader, EveryRankTakesAsManySteps) {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (int rank = 0; rank < size; ++rank) {
      const auto batches = loader(17, {.global_batch = 8, .rank = rank, .size = size});
      std::int64_t steps = 0;
      for (Batch batch; batches->next(batch); ++steps) EXPECT_EQ(batch.global_rows, steps < 2 ? 8 : 1);
      EXPECT_EQ(steps, 3) << "rank " << rank << " of " << size;
      EXPECT_EQ(batches->batches(), 3);
    }
  }
}

TEST(Loader, RanksTogetherSeeEverySampleOnce) {
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < 4; ++rank) {
    const auto share = drain(*loader(17, {.global_batch = 8, .rank = rank, .size = 4}));
    all.insert(all.end(), share.begin(), share.end());
  }
  std::ranges::sort(all);
  std::vector<std::int64_t> expected(17);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(Loader, APaddingRowDoesNotCount) {
  const auto batches = loader(17, {.global_batch = 8, .rank = 1, .size = 2});
  Batch batch;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(batches->next(batch));
  EXPECT_EQ(batch.inputs[0].size(0), 1);
  EXPECT_EQ(batch.valid, 0);
  EXPECT_EQ(batch.global_rows, 1);
}

// Returns the distinct seeds that gather() gets in one epoch; there should be exactly one.
std::set<std::uint64_t> seeds_of(std::int64_t epoch, const BatchSampler::Options& options) {
  const auto numbers = std::make_shared<Numbers>(17);
  const auto batches = make_loader(numbers, options);
  batches->start_epoch(epoch);
  drain(*batches);
  return {numbers->seeds.begin(), numbers->seeds.end()};
}

TEST(Loader, RandomChangesDependOnlyOnSeedAndEpoch) {
  const auto first = seeds_of(0, {.global_batch = 8, .seed = 1});
  EXPECT_EQ(first.size(), 1u);
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(seeds_of(0, {.global_batch = 4, .seed = 1, .rank = rank, .size = 3}), first) << rank;
  }
  EXPECT_NE(seeds_of(1, {.global_batch = 8, .seed = 1}), first);
  EXPECT_NE(seeds_of(0, {.global_batch = 8, .seed = 2}), first);
}

TEST(Loader, RewindsToAnyEpoch) {
  const auto batches = loader(50, {.global_batch = 8});
  const auto first = drain(*batches);
  Batch batch;
  EXPECT_FALSE(batches->next(batch));
  batches->start_epoch(1);
  EXPECT_NE(drain(*batches), first);
  batches->start_epoch(0);
  EXPECT_EQ(drain(*batches), first);
}

TEST(Loader, ReusesTheBatchsMemory) {
  const auto batches = loader(50, {.global_batch = 8});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  const void* memory = batch.inputs[0].data_ptr();
  ASSERT_TRUE(batches->next(batch));
  EXPECT_EQ(batch.inputs[0].data_ptr(), memory);
}

TEST(Loader, DoesNotOverwriteABatchThatIsStillInUse) {
  const auto batches = loader(50, {.global_batch = 8, .shuffle = false});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  const auto kept = batch.inputs[0];
  ASSERT_TRUE(batches->next(batch));
  EXPECT_EQ(kept.data_ptr<std::int64_t>()[0], 0);
  EXPECT_EQ(batch.inputs[0].data_ptr<std::int64_t>()[0], 8);
}

TEST(Loader, LeavesTheBatchAloneAtTheEnd) {
  const auto batches = loader(8, {.global_batch = 8});
  Batch batch;
  ASSERT_TRUE(batches->next(batch));
  EXPECT_FALSE(batches->next(batch));
  EXPECT_EQ(batch.valid, 8);
}

TEST(Loader, HasTheSizeOfItsDataset) {
  EXPECT_EQ(loader(50, {.samples = 50, .global_batch = 8})->batches(), 7);
  EXPECT_THROW(loader(50, {.samples = 49, .global_batch = 8}), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
