// Points of the plane on two rings around the origin; the class is the ring. Made by the program, so it needs no files.
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct RingsConfig {
  std::int64_t train_samples = 2000;
  std::int64_t test_samples = 500;
  double noise = 0.1;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "points to train on", config::at_least(1));
    v("test_samples", test_samples, "points to test on", config::at_least(1));
    v("noise", noise, "maximum distance of a point from its ring", config::between(0, 0.5));
    v("seed", seed, "random seed of the points");
  }
};

class Rings final : public Dataset {
 public:
  // `split` keeps the points of training and test apart.
  Rings(const RingsConfig& config, std::int64_t samples, std::uint64_t split)
      : noise_(static_cast<float>(config.noise)),
        samples_(samples),
        seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = static_cast<std::int64_t>(indices.size());
    auto* point = ensure(batch.inputs, 0, std::array{rows, std::int64_t{2}}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " of ", size());
      // A stream per sample: a point depends on its index alone, not on what was read before it.
      RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
      const auto ring = static_cast<std::int64_t>(random.below(2));
      const float angle = random.between(0, 2 * std::numbers::pi_v<float>);
      const float radius = static_cast<float>(1 + ring) + random.between(-noise_, noise_);
      *point++ = radius * std::cos(angle);
      *point++ = radius * std::sin(angle);
      *target++ = ring;
    }
  }

 private:
  SampleSpec spec_ = classification_samples({2}, 2);
  float noise_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_rings(const RingsConfig& config) {
  return {.train = std::make_shared<Rings>(config, config.train_samples, 0),
          .test = std::make_shared<Rings>(config, config.test_samples, 1)};
}

const bool rings_registered =
    add_dataset_without_files<RingsConfig>("rings", "points on two rings in the plane", make_rings);

}  // namespace
}  // namespace phalanx
