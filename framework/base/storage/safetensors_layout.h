// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"

namespace phalanx {

/// What is to be in a file of safetensors, and where.
struct SafetensorsLayout {
  struct Tensor {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
  };

  /// One tensor behind the other. Throws DataError, with the file's `path`, for two of one name and a dtype that the
  /// format does not have here.
  SafetensorsLayout(const std::string& path, const std::vector<Tensor>& tensors);

  std::string head;                             // all bytes before the elements
  std::vector<SafetensorsFile::Entry> entries;  // in their order
  std::uint64_t bytes = 0;                      // of the file
};

/// "F32" -> at::kFloat. Nothing for a name that is not known.
std::optional<at::ScalarType> safetensors_dtype(const std::string& name);

}  // namespace phalanx
