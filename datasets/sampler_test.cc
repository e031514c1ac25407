// SPDX-License-Identifier: Apache-2.0
#include "datasets/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace phalanx {
namespace {

using Options = BatchSampler::Options;
using Indices = std::vector<std::int64_t>;

// Returns the samples of a global batch: the shares of all ranks, concatenated.
Indices global_batch(Options options, std::int64_t epoch, std::int64_t cursor) {
  Indices all;
  for (options.rank = 0; options.rank < options.size; ++options.rank) {
    BatchSampler sampler(options);
    const auto share = sampler.share(epoch, cursor);
    all.insert(all.end(), share.indices.begin(), share.indices.begin() + share.valid);
  }
  return all;
}

Indices epoch_order(Options options, std::int64_t epoch) {
  Indices all;
  for (std::int64_t cursor = 0; cursor < BatchSampler(options).batches(); ++cursor) {
    const auto batch = global_batch(options, epoch, cursor);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(BatchSampler, GlobalBatchesDoNotDependOnTheNumberOfRanks) {
  const auto alone = epoch_order({.samples = 103, .global_batch = 16, .seed = 5}, 2);
  for (const int size : {2, 3, 4, 5, 8}) {
    EXPECT_EQ(epoch_order({.samples = 103, .global_batch = 16, .seed = 5, .size = size}, 2), alone) << size << " ranks";
  }
}

TEST(BatchSampler, AnEpochHasEverySampleOnce) {
  auto all = epoch_order({.samples = 103, .global_batch = 16, .size = 5}, 0);
  std::sort(all.begin(), all.end());
  Indices expected(103);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(BatchSampler, SharesAreNearlyEqualAndTheFirstOnesLonger) {
  Indices sizes, begins;
  for (int rank = 0; rank < 4; ++rank) {
    BatchSampler sampler({.samples = 10, .global_batch = 10, .rank = rank, .size = 4});
    const auto share = sampler.share(0, 0);
    sizes.push_back(share.valid);
    EXPECT_EQ(share.indices.size(), share.valid);
    EXPECT_EQ(share.global_rows, 10);
    begins.push_back(share.first_row);
  }
  EXPECT_EQ(sizes, (Indices{3, 3, 2, 2}));
  EXPECT_EQ(begins, (Indices{0, 3, 6, 8}));
}

TEST(BatchSampler, ARankTakesWholePartsWhereThereAreMorePartsThanRanks) {
  for (const int size : {1, 2, 3, 6}) {
    Indices ends;
    std::int64_t taken = 0;
    for (int rank = 0; rank < size; ++rank) {
      BatchSampler sampler({.samples = 9, .global_batch = 9, .rank = rank, .size = size, .parts = 6});
      taken += sampler.share(0, 0).valid;
      ends.push_back(taken);
    }
    const Indices border{2, 4, 6, 7, 8, 9};  // ends of the six parts
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(ends[rank], border[(rank + 1) * 6 / size - 1]) << size;
  }
  EXPECT_THROW(BatchSampler({.samples = 9, .global_batch = 9, .size = 4, .parts = 6}), std::invalid_argument);
}

Options with_shares(Options options, const Indices& shares) {
  options.size = static_cast<int>(shares.size());
  options.shares = std::make_shared<const Indices>(shares);
  return options;
}

TEST(BatchSampler, SharesDivideTheSameGlobalBatches) {
  const Options options{.samples = 103, .global_batch = 16, .seed = 5};
  const auto alone = epoch_order(options, 2);
  for (const Indices& shares : {Indices{2, 1}, {1, 1}, {1, 15}, {3, 1, 7, 5}, {1, 1'000'000, 1}}) {
    EXPECT_EQ(epoch_order(with_shares(options, shares), 2), alone) << shares.size() << " ranks";
  }
}

TEST(BatchSampler, PartsAreInProportionToShares) {
  const Indices shares{5, 1, 2};
  Options options = with_shares({.samples = 22, .global_batch = 16}, shares);
  for (options.rank = 0; options.rank < options.size; ++options.rank) {
    BatchSampler sampler(options);
    const auto whole = sampler.share(0, 0);
    EXPECT_EQ(whole.valid, 2 * shares[options.rank]);
    EXPECT_EQ(whole.global_rows, 16);
    EXPECT_NEAR(static_cast<double>(sampler.share(0, 1).valid), 6 * shares[options.rank] / 8.0, 1) << "of six samples";
  }
}

TEST(BatchSampler, SharesMayChangeBetweenEpochs) {
  const auto shares = std::make_shared<Indices>(Indices{1, 1});
  Options options{.samples = 8, .global_batch = 8, .size = 2, .shares = shares};
  BatchSampler sampler(options);
  EXPECT_EQ(sampler.share(0, 0).valid, 4);
  *shares = {3, 1};
  EXPECT_EQ(sampler.share(1, 0).valid, 6);
}

TEST(BatchSampler, RefusesSharesThatDoNotFit) {
  const Options good{.samples = 10, .global_batch = 6};
  EXPECT_NO_THROW(BatchSampler{with_shares(good, {2, 1})});
  EXPECT_THROW(BatchSampler{with_shares(good, {2, 0})}, std::invalid_argument);
  EXPECT_THROW(BatchSampler{with_shares(good, {2, -1})}, std::invalid_argument);
  Options options = with_shares(good, {2, 1});
  options.size = 3;
  EXPECT_THROW(BatchSampler{options}, std::invalid_argument);
  options.size = 2;
  options.parts = 4;
  EXPECT_THROW(BatchSampler{options}, std::invalid_argument);
}

TEST(BatchSampler, TheLastBatchIsSmaller) {
  BatchSampler sampler({.samples = 103, .global_batch = 16, .rank = 1, .size = 2});
  EXPECT_EQ(sampler.batches(), 7);
  const auto share = sampler.share(0, 6);
  EXPECT_EQ(share.global_rows, 7);
  EXPECT_EQ(share.valid, 3);
}

TEST(BatchSampler, SkippedSamplesBelongToNoBatch) {
  Options options{.samples = 103, .global_batch = 16, .seed = 5};
  const auto whole = epoch_order(options, 2);
  for (const std::int64_t skipped : {1, 40, 102}) {
    options.skipped = skipped;
    EXPECT_EQ(epoch_order(options, 2), Indices(whole.begin() + skipped, whole.end())) << skipped;
  }
  options.last = LastBatch::kDrop;
  options.skipped = 80;
  EXPECT_EQ(BatchSampler(options).batches(), 1);
  for (const std::int64_t skipped : {88, 103, 112}) {
    options.skipped = skipped;
    EXPECT_EQ(BatchSampler(options).batches(), 0) << skipped;
  }
}

TEST(BatchSampler, ARankWithoutSamplesGetsOnePaddingRow) {
  for (int rank = 0; rank < 5; ++rank) {
    BatchSampler sampler({.samples = 3, .global_batch = 8, .rank = rank, .size = 5});
    const auto share = sampler.share(0, 0);
    ASSERT_EQ(share.indices.size(), 1) << "rank " << rank;
    EXPECT_EQ(share.valid, rank < 3 ? 1 : 0);
    EXPECT_EQ(share.global_rows, 3);
    EXPECT_GE(share.indices[0], 0);
    EXPECT_LT(share.indices[0], 3);
  }
}

// These values were computed once by another program. A change of them changes the result of every training run.
TEST(BatchSampler, HasTheSameOrderInEveryRelease) {
  EXPECT_EQ(epoch_order({.samples = 10, .global_batch = 10, .seed = 0}, 0), (Indices{4, 7, 0, 5, 9, 3, 6, 2, 8, 1}));
  EXPECT_EQ(epoch_order({.samples = 10, .global_batch = 10, .seed = 1}, 0), (Indices{1, 9, 0, 7, 4, 2, 5, 3, 8, 6}));
  EXPECT_EQ(epoch_order({.samples = 10, .global_batch = 10, .seed = 1}, 1), (Indices{9, 5, 8, 0, 1, 2, 7, 3, 4, 6}));
  EXPECT_EQ(epoch_order({.samples = 10, .global_batch = 10, .seed = -1}, 0), (Indices{8, 7, 1, 0, 6, 5, 3, 4, 2, 9}));
  EXPECT_EQ(global_batch({.samples = 60000, .global_batch = 6, .seed = 42, .size = 3}, 3, 0),
            (Indices{20151, 46174, 44486, 22297, 43270, 57811}));
}

TEST(BatchSampler, AnEpochDoesNotDependOnTheOnesBefore) {
  const Options options{.samples = 50, .global_batch = 50};
  BatchSampler visited(options), fresh(options);
  for (const int epoch : {0, 4, 1}) visited.share(epoch, 0);
  EXPECT_TRUE(std::ranges::equal(visited.share(3, 0).indices, fresh.share(3, 0).indices));
}

TEST(BatchSampler, KeepsTheDatasetsOrderWithoutShuffling) {
  const Options options{.samples = 5, .global_batch = 2, .shuffle = false};
  EXPECT_EQ(epoch_order(options, 0), (Indices{0, 1, 2, 3, 4}));
  EXPECT_EQ(epoch_order(options, 9), (Indices{0, 1, 2, 3, 4}));
}

TEST(BatchSampler, SharesAreViewsOfTheOrder) {
  BatchSampler sampler({.samples = 100, .global_batch = 10});
  const auto* first = sampler.share(0, 0).indices.data();
  EXPECT_EQ(sampler.share(0, 3).indices.data(), first + 30);
}

TEST(BatchSampler, RefusesInvalidOptions) {
  const Options good{.samples = 10, .global_batch = 2};
  const auto refused = [&](auto member, auto value) {
    Options options = good;
    options.*member = value;
    EXPECT_THROW(BatchSampler{options}, std::invalid_argument) << value;
  };
  refused(&Options::samples, 0);
  refused(&Options::global_batch, 0);
  refused(&Options::size, 0);
  refused(&Options::rank, 1);
  refused(&Options::rank, -1);
  BatchSampler sampler(good);
  EXPECT_THROW(sampler.share(0, 5), std::out_of_range);
  EXPECT_THROW(sampler.share(0, -1), std::out_of_range);
  EXPECT_THROW(sampler.share(-1, 0), std::out_of_range);
}

}  // namespace
}  // namespace phalanx
