// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace phalanx {

/// A source of a dataset's images: files, archives, or memory. Thread-safe for reading.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::int64_t size() const = 0;  // images
  virtual std::int64_t label(std::int64_t index) const = 0;

  /// Returns image `index`, uint8 [channels, height, width], with any strides. The caller must not write to it. Throws
  /// DataError, which names the file, if it cannot be read.
  virtual at::Tensor image(std::int64_t index) const = 0;

  /// Returns where the image comes from: "train/cat/7.jpg".
  virtual std::string name(std::int64_t index) const = 0;
};

}  // namespace phalanx
