// SPDX-License-Identifier: Apache-2.0
// Images of noise with random classes, in any size. They serve to measure the speed of training, not to learn.
#include <cstdint>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct RandomImagesConfig : GeneratedConfig {
  std::int64_t channels = 3;
  std::int64_t side = 224;
  std::int64_t classes = 1000;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("channels", channels, "channels of an image", config::between(1, 1024));
    v("side", side, "height and width", config::between(1, 1 << 14));
    v("classes", classes, "classes of the images", config::between(2, 1 << 24));
    visit_seed(v);
  }
};

class RandomImages final : public GeneratedDataset {
 public:
  RandomImages(const RandomImagesConfig& config, Split split)
      : GeneratedDataset(classification_samples({config.channels, config.side, config.side}, config.classes), split),
        values_(config.channels * config.side * config.side),
        classes_(static_cast<std::uint64_t>(config.classes)) {}

  std::int64_t label(std::int64_t index) const override {
    return static_cast<std::int64_t>(RandomStream(seed_of(index)).below(classes_));
  }

 private:
  void write(std::int64_t index, const Row& row) const override {
    RandomStream random(mix(seed_of(index), 1));
    auto* value = row.input<float>();
    for (auto left = values_; left > 0; --left) *value++ = random.between(-1.7320508F, 1.7320508F);  // variance 1
    *row.target<std::int64_t>() = label(index);
  }

  std::int64_t values_;
  std::uint64_t classes_;
};

const bool random_images_registered = add_dataset_without_files<RandomImagesConfig>(
    "random_images", "images of noise, for measuring speed", generated_splits<RandomImages, RandomImagesConfig>);

}  // namespace
}  // namespace phalanx
