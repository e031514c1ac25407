// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "datasets/dataset.h"
#include "datasets/digits/drawing.h"
#include "datasets/digits/glyphs.h"
#include "datasets/image_dataset.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct DigitsConfig {
  std::int64_t train_samples = 8000;
  std::int64_t test_samples = 2000;
  std::int64_t side = 28;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "images to generate for training", config::at_least(1));
    v("test_samples", test_samples, "images to draw for testing, none of them a training image", config::at_least(1));
    v("side", side, "width and height of an image in pixels", config::between(16, 256));
    v("seed", seed, "random seed of the images");
    v("root", root, "unused, since there are no files");
  }
};

enum Stream : std::uint64_t { kTrain, kTest };

std::shared_ptr<const Dataset> draw_split(const DigitsConfig& config, std::int64_t samples, Stream stream) {
  auto images = draw_digits(samples, config.side, config.seed, stream);
  const auto spec = classification_samples({1, config.side, config.side}, kDigits);
  return std::make_shared<ImageDataset>(std::move(images), spec, std::span(&kDigitsStatistics, 1));
}

Splits draw_splits(const DigitsConfig& config) {
  return {.train = draw_split(config, config.train_samples, kTrain),
          .test = draw_split(config, config.test_samples, kTest)};
}

const bool digits_registered =
    Datasets::global().add<DigitsConfig>("digits", "synthetic handwritten digits, needs no files", draw_splits);

}  // namespace
}  // namespace phalanx
