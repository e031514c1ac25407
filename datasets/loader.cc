// SPDX-License-Identifier: Apache-2.0
#include "datasets/loader.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "datasets/sampled_loader.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

// Derives the seed of the changes from mix(seed, epoch), which is also the seed of the sample order.
constexpr std::uint64_t kChangesOfSamples = 1;

class GatheringLoader final : public SampledLoader {
 public:
  GatheringLoader(std::shared_ptr<const Dataset> dataset, const BatchSampler::Options& options)
      : SampledLoader(options), dataset_(std::move(dataset)) {}

 private:
  void read(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) override {
    dataset_->gather(indices, seed, batch);
  }

  std::shared_ptr<const Dataset> dataset_;
};

}  // namespace

std::uint64_t seed_of_changes(std::uint64_t seed, std::int64_t epoch) {
  return mix(mix(seed, static_cast<std::uint64_t>(epoch)), kChangesOfSamples);
}

std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, BatchSampler::Options options) {
  if (options.samples == 0) options.samples = dataset->size();
  if (options.samples != dataset->size()) {
    throw std::invalid_argument("make_loader: options.samples is " + std::to_string(options.samples) +
                                ", the dataset has " + std::to_string(dataset->size()));
  }
  return std::make_unique<GatheringLoader>(std::move(dataset), options);
}

}  // namespace phalanx
