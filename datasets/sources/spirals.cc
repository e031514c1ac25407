// SPDX-License-Identifier: Apache-2.0
// Generated points of the plane on spirals around the origin, one spiral per class.
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct SpiralsConfig {
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 2'000;
  std::int64_t classes = 2;
  double turns = 1.5;
  double noise = 0.02;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "samples to train on", config::at_least(1));
    v("test_samples", test_samples, "samples to test on", config::at_least(1));
    v("classes", classes, "number of spirals", config::between(2, 1000));
    v("turns", turns, "turns of each spiral around the origin", config::above(0));
    v("noise", noise, "maximum distance of a point from its spiral, whose radius is 1", config::between(0, 1));
    v("seed", seed, "random seed of the samples");
    v("root", root, "unused, since there are no files");
  }
};

class Spirals final : public Dataset {
 public:
  // `split` separates the training samples from the test samples.
  Spirals(const SpiralsConfig& config, std::int64_t samples, std::uint64_t split)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  std::int64_t label(std::int64_t index) const override { return draw(index).label; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* point = ensure(batch.inputs, 0, std::array{rows, std::int64_t{2}}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      auto [random, label] = draw(index);
      const auto noise = static_cast<float>(config_.noise);
      const float radius = random.between(0, 1);
      const auto angle = 2 * std::numbers::pi *
                         (config_.turns * static_cast<double>(radius) +
                          static_cast<double>(label) / static_cast<double>(config_.classes));
      *point++ = radius * static_cast<float>(std::cos(angle)) + random.between(-noise, noise);
      *point++ = radius * static_cast<float>(std::sin(angle)) + random.between(-noise, noise);
      *target++ = label;
    }
  }

 private:
  struct Drawn {
    RandomStream random;
    std::int64_t label;
  };
  Drawn draw(std::int64_t index) const {
    RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
    const auto label = random.below(static_cast<std::uint64_t>(config_.classes));
    return {random, static_cast<std::int64_t>(label)};
  }

  SpiralsConfig config_;
  SampleSpec spec_ = classification_samples({2}, config_.classes);
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_spirals(const SpiralsConfig& config) {
  return {.train = std::make_shared<Spirals>(config, config.train_samples, 0),
          .test = std::make_shared<Spirals>(config, config.test_samples, 1)};
}

const bool spirals_registered =
    Datasets::global().add<SpiralsConfig>("spirals", "points on spirals in the plane", make_spirals);

}  // namespace
}  // namespace phalanx
