// SPDX-License-Identifier: Apache-2.0
#include "datasets/skipping_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Indices = std::vector<std::int64_t>;

// Sample i is the number i.
class PartlyBad final : public Dataset {
 public:
  PartlyBad(std::int64_t samples, std::set<std::int64_t> bad) : samples_(samples), bad_(std::move(bad)) {}
  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, std::int64_t{1}}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      if (bad_.contains(index)) throw DataError("file.bin: byte " + std::to_string(8 * index) + ": damaged");
      *input++ = static_cast<float>(index);
      *target++ = index;
    }
  }

 private:
  SampleSpec spec_ = classification_samples({1}, 100);
  std::int64_t samples_;
  std::set<std::int64_t> bad_;
};

Indices read(const Dataset& dataset, const Indices& indices) {
  Batch batch;
  dataset.gather(indices, 0, batch);
  const auto* values = batch.targets.at(0).const_data_ptr<std::int64_t>();
  const auto* inputs = batch.inputs.at(0).const_data_ptr<float>();
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(static_cast<std::int64_t>(inputs[i]), values[i]);
  return {values, values + indices.size()};
}

TEST(SkippingDataset, ReplacesAnUnreadableSampleByTheNextReadableOne) {
  const SkippingDataset dataset(std::make_shared<PartlyBad>(10, std::set<std::int64_t>{3, 4, 9}), 5);
  EXPECT_EQ(read(dataset, {2, 3, 4, 9, 5}), (Indices{2, 5, 5, 0, 5}));
  EXPECT_EQ(dataset.skipped(), 3);
  EXPECT_EQ(dataset.replaced(), 3);
  EXPECT_EQ(read(dataset, {3, 1}), (Indices{5, 1})) << "and again";
  EXPECT_EQ(dataset.skipped(), 3);
  EXPECT_EQ(dataset.replaced(), 4);
}

// The replacement of a sample depends neither on the rank that reads it nor on the other samples of the batch.
TEST(SkippingDataset, DoesNotDependOnHowABatchIsSplit) {
  const auto samples = std::make_shared<PartlyBad>(20, std::set<std::int64_t>{0, 7, 8, 19});
  Indices all(20);
  for (std::int64_t i = 0; i < 20; ++i) all[static_cast<std::size_t>(i)] = i;
  const auto whole = read(SkippingDataset(samples, 4), all);
  const SkippingDataset parts(samples, 4);
  for (std::int64_t i = 19; i >= 0; --i) EXPECT_EQ(read(parts, {i}), (Indices{whole[static_cast<std::size_t>(i)]}));
}

TEST(SkippingDataset, NamesTheSampleThatIsOneTooMany) {
  const SkippingDataset dataset(std::make_shared<PartlyBad>(10, std::set<std::int64_t>{3, 6}), 1);
  EXPECT_EQ(read(dataset, {3}), (Indices{4}));
  EXPECT_THAT([&] { read(dataset, {6}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("file.bin: byte 48: damaged; 2 of 10 samples cannot be read"),
                                             HasSubstr("loader.max_errors allows 1"))));
  EXPECT_THAT([&] { read(SkippingDataset(std::make_shared<PartlyBad>(2, std::set<std::int64_t>{0, 1}), 9), {0}); },
              ThrowsMessage<DataError>(HasSubstr("2 of 2 samples cannot be read")));
}

// Throws an error of LibTorch for sample 1, and std::bad_alloc for sample 2.
class Failing final : public Dataset {
 public:
  std::int64_t size() const override { return 4; }
  const SampleSpec& spec() const override { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    for (const auto index : indices) {
      TORCH_CHECK(index != 1, "no such shape");
      if (index == 2) throw std::bad_alloc();
    }
    const std::array rows{std::ssize(indices), std::int64_t{1}};
    ensure(batch.inputs, 0, rows, at::kFloat).zero_();
    ensure(batch.targets, 0, std::array{rows[0]}, at::kLong).zero_();
  }

 private:
  SampleSpec spec_ = classification_samples({1}, 100);
};

TEST(SkippingDataset, TreatsErrorsOfLibTorchAndOfMemoryAsErrorsOfTheSample) {
  Batch batch;
  const SkippingDataset skipping(std::make_shared<Failing>(), 2);
  skipping.gather(Indices{0, 1, 2, 3}, 0, batch);
  EXPECT_EQ(skipping.skipped(), 2);
  const SkippingDataset strict(std::make_shared<Failing>(), 0);
  EXPECT_THAT([&] { strict.gather(Indices{1}, 0, batch); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("sample 1: no such shape"), HasSubstr("loader.max_errors"))));
}

}  // namespace
}  // namespace phalanx
