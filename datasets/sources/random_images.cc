// SPDX-License-Identifier: Apache-2.0
// Images of noise with random classes, in any size. They serve to measure the speed of training, not to learn.
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct RandomImagesConfig {
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 2'000;
  std::int64_t channels = 3;
  std::int64_t side = 224;
  std::int64_t classes = 1000;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "samples to train on", config::at_least(1));
    v("test_samples", test_samples, "samples to test on", config::at_least(1));
    v("channels", channels, "channels of an image", config::between(1, 1024));
    v("side", side, "height and width", config::between(1, 1 << 14));
    v("classes", classes, "classes of the images", config::between(2, 1 << 24));
    v("seed", seed, "random seed of the samples");
    v("root", root, "unused, since there are no files");
  }
};

class RandomImages final : public Dataset {
 public:
  // `split` separates the training samples from the test samples.
  RandomImages(const RandomImagesConfig& config, std::int64_t samples, std::uint64_t split)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  std::int64_t label(std::int64_t index) const override {
    RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config_.classes)));
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, config_.channels, config_.side, config_.side}, at::kFloat)
                      .data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream random(mix(mix(seed_, static_cast<std::uint64_t>(index)), 1));
      for (auto left = config_.channels * config_.side * config_.side; left > 0; --left) {
        *input++ = random.between(-1.7320508F, 1.7320508F);  // variance 1
      }
      *target++ = label(index);
    }
  }

 private:
  RandomImagesConfig config_;
  SampleSpec spec_ = classification_samples({config_.channels, config_.side, config_.side}, config_.classes);
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_random_images(const RandomImagesConfig& config) {
  return {.train = std::make_shared<RandomImages>(config, config.train_samples, 0),
          .test = std::make_shared<RandomImages>(config, config.test_samples, 1)};
}

const bool random_images_registered = Datasets::global().add<RandomImagesConfig>(
    "random_images", "images of noise, for measuring speed", make_random_images);

}  // namespace
}  // namespace phalanx
