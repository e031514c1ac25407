// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/printable.h"

namespace phalanx {

/// Returns the error for a tensor of a file whose type has no equivalent here. `has` says which: "has dtype F8_E4M3".
inline std::string unsupported_dtype(const std::string& tensor, const std::string& has) {
  return "tensor " + printable(tensor) + " " + has +
         ", which is not supported; convert it to a floating-point number of 16, 32 or 64 bits";
}

}  // namespace phalanx
