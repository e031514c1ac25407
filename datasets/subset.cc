// SPDX-License-Identifier: Apache-2.0
#include "datasets/subset.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "datasets/shuffle.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kHeldOut = 0x68656c646f7574;  // stream of the seed, far from the streams of epochs

std::vector<std::int64_t> mapped(const std::vector<std::int64_t>& to, std::span<const std::int64_t> indices) {
  std::vector<std::int64_t> theirs;
  theirs.reserve(indices.size());
  for (const auto index : indices) {
    TORCH_CHECK_INDEX(index >= 0 && index < std::ssize(to), "sample ", index, " is out of range; the size is ",
                      to.size());
    theirs.push_back(to[static_cast<std::size_t>(index)]);
  }
  return theirs;
}

class SubsetChanges final : public BatchChanges {
 public:
  SubsetChanges(std::shared_ptr<const BatchChanges> changes, std::vector<std::int64_t> indices)
      : changes_(std::move(changes)), indices_(std::move(indices)) {}

  void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    changes_->apply(mapped(indices_, indices), seed, batch);
  }

 private:
  std::shared_ptr<const BatchChanges> changes_;
  std::vector<std::int64_t> indices_;
};

class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    auto sorted = indices_;
    std::ranges::sort(sorted);
    repeats_ = std::ranges::adjacent_find(sorted) != sorted.end();
  }

  std::int64_t size() const override { return std::ssize(indices_); }
  const SampleSpec& spec() const override { return dataset_->spec(); }
  bool samples_overlap() const override { return repeats_ || dataset_->samples_overlap(); }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    dataset_->gather(mapped(indices_, indices), seed, batch);
  }

  std::int64_t label(std::int64_t index) const override {
    return dataset_->label(indices_.at(static_cast<std::size_t>(index)));
  }
  std::int64_t length(std::int64_t index) const override {
    return dataset_->length(indices_.at(static_cast<std::size_t>(index)));
  }

  bool varies() const override { return dataset_->varies(); }
  std::shared_ptr<const Dataset> unchanged() const override {
    auto dataset = dataset_->unchanged();
    return dataset ? std::make_shared<Subset>(std::move(dataset), indices_) : nullptr;
  }
  std::shared_ptr<const BatchChanges> changes() const override {
    auto changes = dataset_->changes();
    return changes ? std::make_shared<SubsetChanges>(std::move(changes), indices_) : nullptr;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<std::int64_t> indices_;
  bool repeats_;  // some sample appears more than once
};

}  // namespace

std::shared_ptr<const Dataset> make_subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices) {
  const auto good = [&](std::int64_t index) { return index >= 0 && index < dataset->size(); };
  if (indices.empty() || !std::ranges::all_of(indices, good)) {
    throw std::invalid_argument("make_subset: there are no indices, or one of them is not that of a sample");
  }
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}

Splits hold_out(const Splits& splits, double share, std::int64_t seed) {
  if (splits.validation) {
    throw ConfigError("evaluate.validation: the dataset has a validation split of its own; leave the key out");
  }
  if (splits.train->samples_overlap()) {
    throw ConfigError(
        "evaluate.validation: samples of this dataset overlap, so that training would see held-out data; use samples "
        "that do not overlap (dataset.stride: 0)");
  }
  const auto samples = splits.train->size();
  const auto count = std::llround(share * static_cast<double>(samples));
  if (count < 1 || count >= samples) {
    throw ConfigError("evaluate.validation: " + std::to_string(share) + " of " + std::to_string(samples) +
                      " training samples are " + std::to_string(count) + "; both splits need at least one");
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, RandomStream(mix(static_cast<std::uint64_t>(seed), kHeldOut)));
  const auto border = order.begin() + count;
  std::sort(order.begin(), border);
  std::sort(border, order.end());
  auto unchanged = splits.train->unchanged();
  return {.train = make_subset(splits.train, {border, order.end()}),
          .validation = make_subset(unchanged ? std::move(unchanged) : splits.train, {order.begin(), border}),
          .test = splits.test};
}

}  // namespace phalanx
