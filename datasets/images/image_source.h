// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace phalanx {

/// Where the images of a dataset come from: files, archives, memory. Thread-safe for reading.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::int64_t size() const = 0;  // images
  virtual std::int64_t label(std::int64_t index) const = 0;

  /// Image `index`, uint8 [channels, height, width], with any strides. Nobody writes to it. Throws DataError, which
  /// names the file, where it cannot be read.
  virtual at::Tensor image(std::int64_t index) const = 0;

  /// Where it comes from: "train/cat/7.jpg".
  virtual std::string name(std::int64_t index) const = 0;
};

}  // namespace phalanx
