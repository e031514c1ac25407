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

/// Writes a file of safetensors whose tensors need not be in memory at once: their elements come bit by bit. The file
/// appears whole or not at all. Errors of the file are DataErrors: "PATH: why".
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, const std::vector<SafetensorsLayout::Tensor>& tensors);

  /// Puts elements, on any device, behind those that tensor number `tensor` has already. Throws std::invalid_argument
  /// for another dtype, and for more than the tensor has.
  void append(std::size_t tensor, const at::Tensor& elements);

  /// Blocks until the file is on disk. The last call. Throws std::invalid_argument where a tensor lacks elements.
  void finish();

 private:
  SafetensorsLayout layout_;
  AtomicFile file_;
  std::vector<std::uint64_t> next_;  // of each tensor: where its next elements go, among all elements
};

}  // namespace phalanx
