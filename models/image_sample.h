// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"
#include "framework/base/sample_spec.h"

namespace phalanx {

/// Inputs and outputs of a model that classifies images.
struct ImageSample {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
};

/// Returns the sizes in `spec`. Throws ConfigError unless the inputs are images [channels, height, width] of at least
/// `smallest` pixels a side and the output is one score for each class.
ImageSample image_sample(const std::string& model, const ModelSpec& spec, std::int64_t smallest);

/// The first layers of a convolutional network. Networks that were made for large images suit small ones if their first
/// layers do not reduce the size.
struct Stem {
  std::string stem = "auto";

  template <class V>
  void visit(V& v) {
    v("stem", stem,
      "small: 3 x 3 convolution, for images of about 32 pixels; imagenet: as published; auto: small below 64 pixels",
      config::one_of({"auto", "small", "imagenet"}));
  }

  /// The smallest side of images for each stem. It is such that the smallest feature maps have more than one pixel,
  /// since batch norm of a single image needs several.
  struct Smallest {
    std::int64_t small = 0;
    std::int64_t imagenet = 0;
  };

  /// Returns true if the stem is `imagenet`, and sets `sample` to the inputs and outputs of the model. Throws the
  /// errors of image_sample().
  bool large(const std::string& model, const ModelSpec& spec, Smallest smallest, ImageSample& sample) const;
};

}  // namespace phalanx
