// SPDX-License-Identifier: Apache-2.0
// Tests the guarantees of all samplers, that batches depend neither on the number of ranks nor on where a run was
// resumed, and the guarantees of each sampler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/sample_order.h"
#include "datasets/sampler.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Indices = std::vector<std::int64_t>;
using Options = BatchSampler::Options;

constexpr std::int64_t kClasses = 5;

// Two fifths of the samples are of class 0, the others are divided unevenly; lengths are 1 to 97.
class Samples final : public Dataset {
 public:
  explicit Samples(std::int64_t samples, bool described = true) : samples_(samples), described_(described) {}
  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t label(std::int64_t index) const override { return described_ ? class_of(index) : -1; }
  std::int64_t length(std::int64_t index) const override { return described_ ? 1 + index * 31 % 97 : -1; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    auto* target = ensure(batch.targets, 0, std::array{std::ssize(indices)}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) *target++ = class_of(index);
  }
  static std::int64_t class_of(std::int64_t index) { return std::max<std::int64_t>(0, index * 7 % 10 - 5); }

 private:
  SampleSpec spec_ = classification_samples({1}, kClasses);
  std::int64_t samples_;
  bool described_;
};

std::shared_ptr<const SampleOrder> make(const std::string& yaml, const Dataset& dataset, std::int64_t batch = 16,
                                        std::int64_t seed = 3) {
  return config::load_as<Samplers::Choice>("sampler", yaml, "test.yaml")
      .make({.dataset = dataset, .global_batch = batch, .seed = seed});
}

Indices epoch_of(Options options, std::int64_t epoch) {
  Indices all;
  std::vector<BatchSampler> ranks;
  for (options.rank = 0; options.rank < options.size; ++options.rank) ranks.emplace_back(options);
  for (std::int64_t cursor = 0; cursor < ranks[0].batches(); ++cursor) {
    for (auto& rank : ranks) {
      const auto share = rank.share(epoch, cursor);
      all.insert(all.end(), share.indices.begin(), share.indices.begin() + share.valid);
    }
  }
  return all;
}

// Small windows and blocks, so that few samples have many of them.
const std::vector<std::string> kPartitions{"sequential", "shuffled", "stratified", "{name: bucketed, buckets: 4}",
                                           "{name: streaming, block: 7, window: 20}"};
const std::vector<std::string> kDrawn{"weighted", "{name: weighted, samples: 9000}", "infinite",
                                      "{name: infinite, samples: 37}"};

std::vector<std::string> all_samplers() {
  auto all = kPartitions;
  all.insert(all.end(), kDrawn.begin(), kDrawn.end());
  return all;
}

const std::vector<std::int64_t> kSizes{1, 2, 3, 7, 15, 16, 17, 31, 64, 100, 257, 999, 1000};

TEST(Samplers, AllAreTried) {
  std::set<std::string> tried{"auto"};
  for (const auto& yaml : all_samplers()) {
    tried.insert(config::load_as<Samplers::Choice>("sampler", yaml, "test.yaml").selected());
  }
  const auto names = Samplers::global().names();
  EXPECT_EQ(tried, std::set<std::string>(names.begin(), names.end()));
}

TEST(Samplers, PartitionsTakeEverySampleOnce) {
  for (const auto& yaml : kPartitions) {
    for (std::int64_t n = 1; n <= 1000; n += n < 70 ? 1 : 31) {
      const Samples samples(n);
      const auto order = make(yaml, samples);
      for (const std::int64_t epoch : {0, 5}) {
        auto all =
            epoch_of({.samples = n, .global_batch = 16, .size = 1 + static_cast<int>(n % 17), .order = order}, epoch);
        std::ranges::sort(all);
        Indices expected(static_cast<std::size_t>(n));
        std::iota(expected.begin(), expected.end(), 0);
        ASSERT_EQ(all, expected) << yaml << ", " << n << " samples";
      }
    }
  }
}

TEST(Samplers, BatchesDoNotDependOnTheNumberOfRanks) {
  for (const auto& yaml : all_samplers()) {
    for (const auto n : kSizes) {
      const Samples samples(n);
      const auto order = make(yaml, samples);
      for (const auto last : {LastBatch::kSmaller, LastBatch::kPad}) {
        const Options options{.samples = n, .global_batch = 16, .order = order, .last = last};
        const auto alone = epoch_of(options, 2);
        for (int ranks = 2; ranks <= 17; ++ranks) {
          Options among = options;
          among.size = ranks;
          ASSERT_EQ(epoch_of(among, 2), alone) << yaml << ", " << n << " samples, " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(Samplers, SharesOfRanksAreDisjointPlacesOfABatch) {
  for (const int ranks : {1, 3, 17}) {
    const Samples samples(100);
    Options options{.samples = 100, .global_batch = 16, .size = ranks, .order = make("stratified", samples)};
    std::int64_t next = 0;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      BatchSampler sampler(options);
      const auto share = sampler.share(0, 1);
      EXPECT_EQ(share.first_row, next);
      next += share.valid;
    }
    EXPECT_EQ(next, 16);
  }
}

TEST(Samplers, ResumeAtAnyCursor) {
  for (const auto& yaml : all_samplers()) {
    const Samples samples(257);
    BatchSampler whole({.samples = 257, .global_batch = 16, .rank = 1, .size = 2, .order = make(yaml, samples)});
    for (std::int64_t cursor = 0; cursor < whole.batches(); ++cursor) {
      const auto share = whole.share(3, cursor);
      const Indices expected(share.indices.begin(), share.indices.end());
      BatchSampler resumed({.samples = 257, .global_batch = 16, .rank = 1, .size = 2, .order = make(yaml, samples)});
      EXPECT_TRUE(std::ranges::equal(resumed.share(3, cursor).indices, expected)) << yaml << ", batch " << cursor;
    }
  }
}

TEST(Samplers, OrderEveryEpochAndSeedDifferently) {
  const Samples samples(300);
  for (const auto& yaml : all_samplers()) {
    if (yaml == "sequential") continue;
    const auto order = make(yaml, samples), other = make(yaml, samples, 16, 4);
    Indices first, next, seeded, again;
    order->fill(0, 0, first);
    order->fill(1, 0, next);
    order->fill(0, 0, again);
    other->fill(0, 0, seeded);
    EXPECT_NE(first, next) << yaml;
    EXPECT_NE(first, seeded) << yaml;
    EXPECT_EQ(first, again) << yaml;
  }
}

TEST(Samplers, ShuffledIsIdenticalToTheDefault) {
  const Samples samples(103);
  const Options options{.samples = 103, .global_batch = 16, .seed = 3};
  Options named = options;
  named.order = make("shuffled", samples);
  for (const int epoch : {0, 1, 7}) EXPECT_EQ(epoch_of(named, epoch), epoch_of(options, epoch));
}

TEST(Samplers, RefuseNoSamplesAndAnEmptyEpoch) {
  EXPECT_THROW(BatchSampler({.samples = 0, .global_batch = 4}), std::invalid_argument);
  EXPECT_THROW(BatchSampler({.samples = 3, .global_batch = 4, .last = LastBatch::kDrop}), std::invalid_argument);
}

TEST(LastBatch, IsDroppedOrFilledFromTheBeginning) {
  for (const auto& yaml : all_samplers()) {
    const Samples samples(100);
    const auto order = make(yaml, samples);
    const auto smaller = epoch_of({.samples = 100, .global_batch = 16, .order = order}, 1);
    const auto dropped = epoch_of({.samples = 100, .global_batch = 16, .order = order, .last = LastBatch::kDrop}, 1);
    const auto padded = epoch_of({.samples = 100, .global_batch = 16, .order = order, .last = LastBatch::kPad}, 1);
    ASSERT_EQ(dropped.size(), smaller.size() / 16 * 16) << yaml;
    ASSERT_EQ(padded.size(), (smaller.size() + 15) / 16 * 16) << yaml;
    EXPECT_TRUE(std::equal(dropped.begin(), dropped.end(), smaller.begin())) << yaml;
    for (std::size_t i = 0; i < padded.size(); ++i) ASSERT_EQ(padded[i], smaller[i % smaller.size()]) << yaml;
  }
}

TEST(LastBatch, IsFilledFromFewerSamplesThanItHas) {
  EXPECT_EQ(epoch_of({.samples = 3, .global_batch = 8, .shuffle = false, .last = LastBatch::kPad}, 0),
            (Indices{0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(Weighted, DrawsClassesEquallyOften) {
  const Samples samples(1000);
  for (const bool described : {true, false}) {
    const Samples same(1000, described);
    const auto all =
        epoch_of({.samples = 1000, .global_batch = 16, .order = make("{name: weighted, samples: 50000}", same)}, 0);
    std::array<int, kClasses> counts{};
    for (const auto index : all) ++counts[static_cast<std::size_t>(Samples::class_of(index))];
    // The expected count is 10,000, with a standard deviation of 89.
    for (const auto count : counts) EXPECT_NEAR(count, 10000, 450);
  }
}

TEST(Weighted, DrawsInProportionToAFileOfWeights) {
  const std::string path = ::testing::TempDir() + "/weights.txt";
  std::ofstream(path) << "1\n0\n2.5\n\n6.5\n";
  const Samples samples(4);
  const auto all = epoch_of({.samples = 4,
                             .global_batch = 16,
                             .order = make("{name: weighted, samples: 40000, weights: " + path + "}", samples)},
                            0);
  std::array<int, 4> counts{};
  for (const auto index : all) ++counts[static_cast<std::size_t>(index)];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 4000, 300);
  EXPECT_NEAR(counts[2], 10000, 450);
  EXPECT_NEAR(counts[3], 26000, 500);
}

TEST(Weighted, RefusesWeightsThatDoNotFit) {
  const Samples samples(3);
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string path = ::testing::TempDir() + "/bad_weights.txt";
    std::ofstream(path) << text;
    EXPECT_THAT([&] { make("{name: weighted, weights: " + path + "}", samples); },
                ThrowsMessage<DataError>(HasSubstr(why)));
  };
  refuses("1\n2\n", "has 2 weights");
  refuses("0 0 0", "sum is 0");
  refuses("1\n-2\n3", "byte 2: expected a weight");
  refuses("1\nx\n3", "byte 2: expected a weight");
}

TEST(Stratified, HasTheProportionsOfTheWholeInEveryBatch) {
  for (const std::int64_t n : {100, 999, 1000}) {
    const Samples samples(n);
    std::array<double, kClasses> counts{};
    for (std::int64_t i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(Samples::class_of(i))];
    const auto all = epoch_of({.samples = n, .global_batch = 16, .order = make("stratified", samples)}, 4);
    for (std::size_t begin = 0; begin + 16 <= all.size(); begin += 16) {
      for (std::int64_t c = 0; c < kClasses; ++c) {
        const double share = counts[static_cast<std::size_t>(c)] / static_cast<double>(n);
        const auto have = std::count_if(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                        all.begin() + static_cast<std::ptrdiff_t>(begin) + 16,
                                        [c](std::int64_t index) { return Samples::class_of(index) == c; });
        EXPECT_LE(std::abs(static_cast<double>(have) - 16 * share), 2 * (1 + kClasses * share)) << n << ", class " << c;
      }
    }
  }
}

TEST(Bucketed, HasSimilarLengthsInABatch) {
  const Samples samples(1000);
  const auto spread = [&](const std::string& yaml) {  // mean range of lengths within a batch
    const auto all = epoch_of({.samples = 1000, .global_batch = 16, .order = make(yaml, samples)}, 1);
    double sum = 0;
    for (std::size_t begin = 0; begin + 16 <= all.size(); begin += 16) {
      Indices lengths;
      for (std::size_t i = 0; i < 16; ++i) lengths.push_back(samples.length(all[begin + i]));
      const auto [least, most] = std::ranges::minmax(lengths);
      sum += static_cast<double>(most - least);
    }
    return sum / (1000 / 16);
  };
  EXPECT_GT(spread("shuffled"), 70);
  EXPECT_LT(spread("{name: bucketed, buckets: 8}"), 97.0 / 8 * 1.5);
}

TEST(Streaming, StaysNearThePlacesOnDisk) {
  const Samples samples(1000);
  const auto order = make("{name: streaming, block: 50, window: 100}", samples);
  Indices window;
  for (std::int64_t number = 0; number < 10; ++number) {
    order->fill(0, number, window);
    std::set<std::int64_t> blocks;
    for (const auto index : window) blocks.insert(index / 50);
    EXPECT_EQ(blocks.size(), 2u);
    EXPECT_FALSE(std::ranges::is_sorted(window));
  }
}

TEST(Infinite, PassesContinueWithinABatch) {
  const Samples samples(10);
  const auto order = make("{name: infinite, samples: 4}", samples);
  Indices all, part;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    order->fill(epoch, 0, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  for (const std::ptrdiff_t pass : {0, 10}) {
    Indices once(all.begin() + pass, all.begin() + pass + 10);
    std::ranges::sort(once);
    EXPECT_EQ(once, (Indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
  EXPECT_EQ(make("infinite", samples)->size(), 16) << "whole batches";
}

// Samples that are numbers and have no class.
class Unlabelled final : public Dataset {
 public:
  std::int64_t size() const override { return 4; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t>, std::uint64_t, Batch&) const override {}

 private:
  SampleSpec spec_{.inputs = {{.name = "x", .shape = {1}}}, .targets = {{.name = "y"}}, .task = "regression"};
};

TEST(Samplers, SayWhatADatasetLacks) {
  const Unlabelled samples;
  for (const std::string name : {"weighted", "stratified"}) {
    EXPECT_THAT([&] { make(name, samples); }, ThrowsMessage<ConfigError>(HasSubstr("loader.sampler: " + name)));
  }
  EXPECT_THAT([&] { make("bucketed", samples); }, ThrowsMessage<ConfigError>(HasSubstr("different lengths")));
}

}  // namespace
}  // namespace phalanx
