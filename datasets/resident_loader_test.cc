// SPDX-License-Identifier: Apache-2.0
#include "datasets/resident_loader.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "datasets/image_dataset.h"
#include "datasets/skipping_dataset.h"
#include "datasets/subset.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::int64_t kImages = 23;
constexpr std::array kStatistics{ChannelStatistics{.mean = 0.25f, .deviation = 0.5f},
                                 ChannelStatistics{.mean = 0.5f, .deviation = 0.25f}};

std::shared_ptr<const Dataset> images(const Augmentation& augmentation) {
  Images all;
  for (int i = 0; i < kImages * 2 * 5 * 7; ++i) all.pixels.push_back(static_cast<std::uint8_t>(i * 37));
  for (int i = 0; i < kImages; ++i) all.labels.push_back(i % 3);
  return std::make_shared<ImageDataset>(all, classification_samples({2, 5, 7}, 3), kStatistics, augmentation);
}

void leave(Batch&) {}

void expect_same_batches(const std::shared_ptr<const Dataset>& dataset) {
  const BatchSampler::Options options{.samples = dataset->size(), .global_batch = 5, .seed = 3, .rank = 1, .size = 2};
  const auto expected = make_loader(dataset, options),
             resident = make_resident_loader(dataset, options, at::kCPU, leave);
  ASSERT_EQ(resident->batches(), expected->batches());
  for (const std::int64_t epoch : {0, 1, 4}) {
    expected->start_epoch(epoch, epoch == 4 ? 2 : 0);
    resident->start_epoch(epoch, epoch == 4 ? 2 : 0);
    Batch a, b;
    while (expected->next(a)) {
      ASSERT_TRUE(resident->next(b));
      EXPECT_TRUE(at::equal(a.inputs.at(0), b.inputs.at(0)));
      EXPECT_TRUE(at::equal(a.targets.at(0), b.targets.at(0)));
      EXPECT_EQ(std::tuple(a.valid, a.global_rows, a.first_row), std::tuple(b.valid, b.global_rows, b.first_row));
    }
    EXPECT_FALSE(resident->next(b));
  }
}

TEST(ResidentLoader, GivesTheBatchesOfALoaderThatReadsThem) { expect_same_batches(images({})); }

TEST(ResidentLoader, ChangesImagesAsTheDatasetDoes) {
  expect_same_batches(images({.padding = 2, .flip = true}));
  expect_same_batches(images({.padding = 9}));  // the crop can lie outside the image
  expect_same_batches(make_subset(images({.flip = true}), {20, 3, 7, 7, 11, 1, 0}));
}

TEST(ResidentLoader, CompletesEachSampleOnce) {
  std::int64_t completed = 0;
  const auto loader = make_resident_loader(images({}), {.global_batch = 5}, at::kCPU, [&](Batch& batch) {
    completed += batch.rows();
    batch.targets = {batch.inputs.at(0)};
  });
  for (const std::int64_t epoch : {0, 1}) {
    loader->start_epoch(epoch);
    for (Batch batch; loader->next(batch);) EXPECT_TRUE(at::equal(batch.targets.at(0), batch.inputs.at(0)));
  }
  EXPECT_EQ(completed, kImages);
}

TEST(ResidentLoader, RefusesTargetsMadeOfSamplesThatChange) {
  const auto loader = make_resident_loader(images({.flip = true}), {.global_batch = 5}, at::kCPU,
                                           [](Batch& batch) { batch.targets = {batch.inputs.at(0)}; });
  Batch batch;
  EXPECT_THROW(loader->next(batch), ConfigError);
}

class ChangedOnTheCpu final : public Dataset {
 public:
  std::int64_t size() const override { return inner_->size(); }
  const SampleSpec& spec() const override { return inner_->spec(); }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    inner_->gather(indices, seed, batch);
  }
  std::shared_ptr<const Dataset> unchanged() const override { return inner_; }

 private:
  std::shared_ptr<const Dataset> inner_ = images({});
};

// Returns other images for each seed.
class RandomTargets final : public Dataset {
 public:
  std::int64_t size() const override { return inner_->size(); }
  const SampleSpec& spec() const override { return inner_->spec(); }
  bool varies() const override { return true; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    std::vector<std::int64_t> drawn;
    for (const auto index : indices) drawn.push_back(static_cast<std::int64_t>((seed + 3) % kImages) * index % kImages);
    inner_->gather(drawn, 0, batch);
  }

 private:
  std::shared_ptr<const Dataset> inner_ = images({});
};

void expect_refused(const std::shared_ptr<const Dataset>& dataset) {
  EXPECT_THAT([&] { make_resident_loader(dataset, {.global_batch = 5}, at::kCPU, leave); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("in a way that only the CPU supports")));
}

TEST(ResidentLoader, RefusesRandomChangesThatDevicesDoNotSupport) {
  const std::vector<std::shared_ptr<const Dataset>> all{std::make_shared<ChangedOnTheCpu>(),
                                                        std::make_shared<RandomTargets>()};
  for (const auto& dataset : all) {
    expect_refused(dataset);
    expect_refused(make_subset(dataset, {3, 1}));
    expect_refused(std::make_shared<SkippingDataset>(dataset, 2));
  }
}

// Images, one of which cannot be read.
class Damaged final : public Dataset {
 public:
  explicit Damaged(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}
  std::int64_t size() const override { return inner_->size(); }
  const SampleSpec& spec() const override { return inner_->spec(); }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    if (std::ranges::find(indices, 4) != indices.end()) throw DataError("image 4 is damaged");
    inner_->gather(indices, seed, batch);
  }
  bool varies() const override { return inner_->varies(); }
  std::shared_ptr<const Dataset> unchanged() const override { return std::make_shared<Damaged>(inner_->unchanged()); }
  std::shared_ptr<const BatchChanges> changes() const override { return inner_->changes(); }

 private:
  std::shared_ptr<const Dataset> inner_;
};

TEST(ResidentLoader, ChangesSamplesThatReplaceUnreadableOnes) {
  expect_same_batches(std::make_shared<SkippingDataset>(images({.flip = true}), 1));
  const auto skipping = std::make_shared<SkippingDataset>(std::make_shared<Damaged>(images({.padding = 2})), 1);
  expect_same_batches(skipping);
  EXPECT_EQ(skipping->skipped(), 1);
}

}  // namespace
}  // namespace phalanx
