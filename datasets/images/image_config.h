// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/images/decode.h"
#include "datasets/images/image_source.h"
#include "datasets/images/transformed_images.h"
#include "datasets/transforms/transform.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config fields that all datasets of encoded images have.
struct ImageConfig {
  std::int64_t side = 224;
  bool color = true;
  std::vector<double> mean{0.485, 0.456, 0.406};  // mean of ImageNet; so is the deviation
  std::vector<double> deviation{0.229, 0.224, 0.225};
  std::vector<TransformConfig> transforms;
  std::vector<TransformConfig> test_transforms;
  std::int64_t decode_side = 0;
  bool exif_orientation = false;
  std::vector<std::int64_t> background;
  std::int64_t skip_corrupt = 0;

  template <class V>
  void visit(V& v) {
    v("side", side, "height and width of a sample", config::between(1, 1 << 16));
    v("color", color, "red, green and blue; false: one channel of luminance");
    v("mean", mean, "mean of each channel, or of all (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of each channel, or of all, by which they are divided",
      config::above(0));
    v("transforms", transforms, "changes of training images; empty: random_resized_crop and flip");
    v("test_transforms", test_transforms, "changes of all other images; empty: resize and center_crop");
    v("decode_side", decode_side,
      "decode a JPEG at 1/2, 1/4 or 1/8 of its size if no side gets smaller than this, which is faster; 0: at full "
      "size",
      config::at_least(0));
    v("exif_orientation", exif_orientation, "turn images upright, as their Exif data say");
    v("background", background,
      "red, green and blue (0 to 255) behind pixels that are not opaque; empty: their colour, without alpha",
      config::between(0, 255));
    v("skip_corrupt", skip_corrupt, "number of images that cannot be read and may be skipped before the run fails",
      config::at_least(0));
  }

  /// Throws ConfigError for a background that is not a colour.
  DecodeOptions decoding() const;

  /// Returns the samples of one split. Throws ConfigError for fields that contradict each other.
  std::shared_ptr<const Dataset> samples(std::shared_ptr<const ImageSource> source, std::int64_t classes,
                                         bool training) const;
};

}  // namespace phalanx
