#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"
#include "framework/base/sample_spec.h"

namespace phalanx {

/// What a model that tells pictures apart takes and gives.
struct ImageSample {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
};

/// Of `spec`. Throws ConfigError for anything but pictures [channels, height, width] of at least `smallest` pixels a
/// side and one score for each class.
ImageSample image_sample(const std::string& model, const ModelSpec& spec, std::int64_t smallest);

/// How a convolutional network begins: a field of those that have been made for large pictures, and suit small ones
/// where they begin without reducing their size.
struct Stem {
  std::string stem = "auto";

  template <class V>
  void visit(V& v) {
    v("stem", stem,
      "small: 3 x 3 convolution, for images of about 32 pixels; imagenet: as published; auto: small below 64 pixels",
      config::one_of({"auto", "small", "imagenet"}));
  }

  /// The least side of pictures with each: of those whose smallest feature maps have more than one pixel, since batch
  /// norm of a single picture needs several.
  struct Smallest {
    std::int64_t small = 0;
    std::int64_t imagenet = 0;
  };

  /// Whether it is `imagenet`, with what the model takes and gives. Throws as image_sample().
  bool large(const std::string& model, const ModelSpec& spec, Smallest smallest, ImageSample& sample) const;
};

}  // namespace phalanx
