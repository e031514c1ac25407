// SPDX-License-Identifier: Apache-2.0
#include "datasets/subset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <stdexcept>

#include "datasets/batch_memory.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Numbers = std::vector<std::int64_t>;

// Sample i is i, or i + 1000 if it is changed at random.
class Counted final : public Dataset {
 public:
  explicit Counted(std::int64_t size, bool changes = false) : size_(size), changes_(changes) {}

  std::int64_t size() const override { return size_; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    auto* input = ensure(batch.inputs, 0, std::array{std::ssize(indices)}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) *input++ = index + (changes_ ? 1000 : 0);
  }
  std::shared_ptr<const Dataset> unchanged() const override {
    return changes_ ? std::make_shared<Counted>(size_) : nullptr;
  }

 private:
  std::int64_t size_;
  bool changes_;
  SampleSpec spec_ = classification_samples({}, 1);
};

Numbers samples_of(const Dataset& dataset) {
  Numbers all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  dataset.gather(all, 0, batch);
  const auto* first = batch.inputs[0].data_ptr<std::int64_t>();
  return {first, first + all.size()};
}

Splits splits_of(std::int64_t samples, bool changes = false) {
  return {.train = std::make_shared<Counted>(samples, changes), .test = std::make_shared<Counted>(3)};
}

TEST(Subset, HasTheSamplesOfItsIndices) {
  const auto some = make_subset(std::make_shared<Counted>(10), {7, 2, 2});
  EXPECT_THAT(samples_of(*some), ElementsAre(7, 2, 2));
  Batch batch;
  EXPECT_THROW(some->gather(Numbers{3}, 0, batch), c10::IndexError);
  EXPECT_THROW(make_subset(std::make_shared<Counted>(10), {}), std::invalid_argument);
  EXPECT_THROW(make_subset(std::make_shared<Counted>(10), {10}), std::invalid_argument);
}

TEST(HoldOut, DividesTheTrainingSamples) {
  const auto splits = hold_out(splits_of(50), 0.2, 1);
  const auto train = samples_of(*splits.train), validation = samples_of(*splits.validation);
  EXPECT_EQ(train.size(), 40u);
  EXPECT_EQ(validation.size(), 10u);
  std::set<std::int64_t> all(train.begin(), train.end());
  all.insert(validation.begin(), validation.end());
  EXPECT_EQ(all.size(), 50u) << "each sample is in one of the two";
  EXPECT_TRUE(std::ranges::is_sorted(train)) << "what is left keeps its order";
  EXPECT_EQ(splits.test->size(), 3);
}

TEST(HoldOut, IsAFunctionOfTheSeed) {
  const auto held = [](std::int64_t seed) { return samples_of(*hold_out(splits_of(50), 0.2, seed).validation); };
  EXPECT_EQ(held(1), held(1));
  EXPECT_NE(held(1), held(2));
}

TEST(HoldOut, HeldOutSamplesAreNotChangedAtRandom) {
  const auto splits = hold_out(splits_of(20, /*changes=*/true), 0.5, 1);
  EXPECT_THAT(samples_of(*splits.train), ::testing::Each(::testing::Ge(1000)));
  EXPECT_THAT(samples_of(*splits.validation), ::testing::Each(::testing::Lt(1000)));
}

class Windows final : public Dataset {
 public:
  std::int64_t size() const override { return 10; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t>, std::uint64_t, Batch&) const override {}
  bool samples_overlap() const override { return true; }

 private:
  SampleSpec spec_ = language_samples(4, 5);
};

TEST(HoldOut, RefusesSamplesThatShareData) {
  EXPECT_THAT([] { hold_out({.train = std::make_shared<Windows>(), .test = std::make_shared<Windows>()}, 0.5, 1); },
              ThrowsMessage<ConfigError>(HasSubstr("samples of this dataset overlap")));
}

TEST(HoldOut, RefusesEmptySplitsAndASecondValidationSplit) {
  EXPECT_THAT([] { hold_out(splits_of(10), 0.01, 1); }, ThrowsMessage<ConfigError>(HasSubstr("evaluate.validation")));
  EXPECT_THAT([] { hold_out(splits_of(10), 0.99, 1); }, ThrowsMessage<ConfigError>(HasSubstr("at least one")));
  EXPECT_THAT([] { hold_out(hold_out(splits_of(10), 0.5, 1), 0.5, 1); },
              ThrowsMessage<ConfigError>(HasSubstr("has a validation split of its own")));
}

}  // namespace
}  // namespace phalanx
