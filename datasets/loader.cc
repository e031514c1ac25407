// SPDX-License-Identifier: Apache-2.0
#include "datasets/loader.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/random.h"

namespace phalanx {
namespace {

// Derives the seed of the changes from mix(seed, epoch), which is also the seed of the sample order.
constexpr std::uint64_t kChangesOfSamples = 1;

class GatheringLoader final : public Loader {
 public:
  GatheringLoader(std::shared_ptr<const Dataset> dataset, const DistributedSampler::Options& options)
      : dataset_(std::move(dataset)), sampler_(options), seed_(static_cast<std::uint64_t>(options.seed)) {}

  std::int64_t batches() const override { return sampler_.batches(); }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    epoch_ = epoch;
    cursor_ = cursor;
  }

  bool next(Batch& batch) override {
    if (cursor_ == sampler_.batches()) return false;
    const auto share = sampler_.share(epoch_, cursor_);
    dataset_->gather(share.indices, seed_of_changes(seed_, epoch_), batch);
    batch.valid = share.valid;
    batch.global_rows = share.global_rows;
    batch.first_row = share.first_row;
    ++cursor_;  // only after a successful read, so that a failed one can be retried
    return true;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  DistributedSampler sampler_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  std::int64_t cursor_ = 0;
};

}  // namespace

std::uint64_t seed_of_changes(std::uint64_t seed, std::int64_t epoch) {
  return mix(mix(seed, static_cast<std::uint64_t>(epoch)), kChangesOfSamples);
}

std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, DistributedSampler::Options options) {
  if (options.samples == 0) options.samples = dataset->size();
  if (options.samples != dataset->size()) {
    throw std::invalid_argument("make_loader: options.samples is " + std::to_string(options.samples) +
                                ", the dataset has " + std::to_string(dataset->size()));
  }
  return std::make_unique<GatheringLoader>(std::move(dataset), options);
}

}  // namespace phalanx
