// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/json.h"

namespace phalanx {

/// Throws ConfigError for a part of a file that Phalanx does not support: "FILE: PATH: WHAT is not supported".
[[noreturn]] void refuse_unsupported(const JsonValue& part, const std::string& what);

}  // namespace phalanx
