// SPDX-License-Identifier: Apache-2.0
// Samples of another dataset with noise as an additional input, for models that generate samples: [n, size] float32,
// normal with mean 0 and standard deviation 1. The noise is drawn again in each epoch for training and once for
// testing. It depends on neither the number of ranks nor the other samples of a batch, and so do a model's outputs.
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <utility>

#include "datasets/batch_memory.h"
#include "datasets/combined/nested_dataset.h"
#include "datasets/combined/redrawn.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct NoiseConfig {
  NestedDataset of;
  std::int64_t size = 64;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset whose samples get the noise");
    v("size", size, "numbers of noise for each sample", config::between(1, 1 << 20));
    v("seed", seed, "random seed of the noise");
  }
};

class WithNoise final : public Dataset {
 public:
  // If `fixed`, uses the same noise in every epoch.
  WithNoise(const NoiseConfig& config, std::shared_ptr<const Dataset> of, bool fixed)
      : config_(config), of_(std::move(of)), fixed_(fixed), spec_(of_->spec()) {
    spec_.inputs.push_back({.name = "noise", .shape = {config.size}});
    spec_.task.clear();  // the dataset's own task takes no noise
  }

  std::int64_t size() const override { return of_->size(); }
  const SampleSpec& spec() const override { return spec_; }
  bool samples_overlap() const override { return of_->samples_overlap(); }
  std::int64_t label(std::int64_t index) const override { return of_->label(index); }
  std::int64_t length(std::int64_t index) const override { return of_->length(index); }

  bool varies() const override { return !fixed_ || of_->varies(); }

  std::shared_ptr<const Dataset> unchanged() const override {
    if (fixed_) return nullptr;
    const auto inner = of_->unchanged();
    return std::make_shared<const WithNoise>(config_, inner ? inner : of_, /*fixed=*/true);
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    of_->gather(indices, seed, batch);
    const std::array shape{std::ssize(indices), config_.size};
    auto* noise = ensure(batch.inputs, of_->spec().inputs.size(), shape, at::kFloat).data_ptr<float>();
    const auto stream = seed_of_draws(config_.seed, fixed_, seed);
    for (const auto index : indices) {
      fill({noise, static_cast<std::size_t>(config_.size)},
           RandomStream(mix(stream, static_cast<std::uint64_t>(index))));
      noise += config_.size;
    }
  }

 private:
  // Fills `values` with normal numbers. Each pair comes from two uniform numbers (Box and Muller 1958).
  static void fill(std::span<float> values, RandomStream draw) {
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log(1.0 - draw.between(0, 1)));
      const double angle = 2 * std::numbers::pi * draw.between(0, 1);
      values[i] = static_cast<float>(radius * std::cos(angle));
      if (i + 1 < values.size()) values[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }

  NoiseConfig config_;
  std::shared_ptr<const Dataset> of_;
  bool fixed_;
  SampleSpec spec_;
};

Splits make_with_noise(const NoiseConfig& config) { return redrawn<WithNoise>(config, config.of.make("of")); }

const bool with_noise_registered = add_dataset_without_files<NoiseConfig>(
    "with_noise", "samples of another dataset, with noise as an additional input", make_with_noise);

}  // namespace
}  // namespace phalanx
