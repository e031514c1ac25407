// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <utility>

#include "datasets/dataset.h"
#include "datasets/digits/drawing.h"
#include "datasets/digits/glyphs.h"
#include "datasets/generated.h"
#include "datasets/image_dataset.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct DigitsConfig : GeneratedConfig {
  DigitsConfig() : GeneratedConfig{.train_samples = 8000} {}

  std::int64_t side = 28;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("side", side, "width and height of an image in pixels", config::between(16, 256));
    visit_seed(v);
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
    add_dataset_without_files<DigitsConfig>("digits", "synthetic handwritten digits, needs no files", draw_splits);

}  // namespace
}  // namespace phalanx
