// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {

/// Returns memory for a tensor of a file. Throws DataError, which names both, if there is not enough.
inline at::Tensor tensor_memory(const std::string& file, const std::string& tensor, at::IntArrayRef shape,
                                at::ScalarType dtype) try {
  return at::empty(shape, dtype);
} catch (const c10::Error&) {
  throw DataError(file + ": tensor " + tensor + ": there is not enough memory for its " +
                  std::to_string(c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(dtype))) +
                  " bytes");
}

}  // namespace phalanx
