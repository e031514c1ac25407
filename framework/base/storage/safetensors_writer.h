// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/atomic_file.h"
#include "framework/base/storage/safetensors_layout.h"

namespace phalanx {

/// Writes a safetensors file whose tensors need not be in memory at the same time: their elements are appended in
/// pieces. The file appears whole or not at all. Errors of the file are DataErrors: "PATH: why".
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsLayout::Tensor>& tensors);

  /// Appends elements, on any device, to tensor number `tensor`. Throws std::invalid_argument if their dtype differs
  /// from the tensor's, or if the tensor has fewer elements.
  void append(std::size_t tensor, const at::Tensor& elements);

  /// Blocks until the file is on disk. Must be the last call. Throws std::invalid_argument if a tensor lacks elements.
  void finish();

 private:
  SafetensorsLayout layout_;
  AtomicFile file_;
  std::vector<std::uint64_t> next_;  // of each tensor: offset of its next elements among all elements
};

}  // namespace phalanx
