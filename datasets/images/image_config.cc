// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/image_config.h"

#include <string>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

TransformConfig transform(const std::string& section) {
  return {config::load_as<Transforms::Choice>("transform", section, "the default transforms")};
}

std::string of_size(const std::string& name, std::int64_t size) {
  return "{name: " + name + ", size: " + std::to_string(size) + "}";
}

// The usual preparation of ImageNet: the central 224 pixels of an image of 256.
std::vector<TransformConfig> default_transforms(std::int64_t side, bool training) {
  if (training) return {transform(of_size("random_resized_crop", side)), transform("flip")};
  return {transform(of_size("resize", side * 8 / 7)), transform(of_size("center_crop", side))};
}

}  // namespace

DecodeOptions ImageConfig::decoding() const {
  if (!background.empty() && background.size() != 3) {
    throw ConfigError("dataset.background: has " + std::to_string(background.size()) +
                      " numbers; give red, green and blue");
  }
  return {.color = color, .smallest_side = decode_side, .turn_upright = exif_orientation, .background = background};
}

std::shared_ptr<const Dataset> ImageConfig::samples(std::shared_ptr<const ImageSource> source, std::int64_t classes,
                                                    bool training) const {
  if (mean.size() != deviation.size()) {
    throw ConfigError("dataset: mean has " + std::to_string(mean.size()) + " numbers and deviation " +
                      std::to_string(deviation.size()) + "; both must have the same number");
  }
  const auto chain = [&](const std::vector<TransformConfig>& configured, bool of_training) {
    return TransformChain(configured.empty() ? default_transforms(side, of_training) : configured);
  };
  TransformedImages::Options options{.spec = classification_samples({color ? 3 : 1, side, side}, classes),
                                     .statistics = channel_statistics(mean, deviation),
                                     .transforms = training ? chain(transforms, true) : chain(test_transforms, false),
                                     .plain = chain(test_transforms, false),
                                     .skip = skip_corrupt};
  if (!color && mean.size() == 3) options.statistics = {{.mean = 0.449F, .deviation = 0.226F}};
  return std::make_shared<TransformedImages>(std::move(source), std::move(options));
}

}  // namespace phalanx
