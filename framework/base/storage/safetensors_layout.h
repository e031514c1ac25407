// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"

namespace phalanx {

/// The contents of a safetensors file that will be written, and their places in it.
struct SafetensorsLayout {
  struct Tensor {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
  };

  /// Places the tensors one after the other. Throws a DataError with the file's `path` if two tensors have the same
  /// name, or if a dtype is not supported.
  SafetensorsLayout(const std::string& path, const std::vector<Tensor>& tensors);

  std::string head;                             // all bytes before the elements
  std::vector<SafetensorsFile::Entry> entries;  // in the order of the elements
  std::uint64_t bytes = 0;                      // size of the file
};

/// Returns the dtype of a name: at::kFloat for "F32". Returns nothing for an unknown name.
std::optional<at::ScalarType> safetensors_dtype(const std::string& name);

}  // namespace phalanx
