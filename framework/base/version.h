// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The version of Phalanx, as a literal that others can be joined to: major.minor.patch.
#define PHALANX_VERSION "0.1.0"

namespace phalanx {

inline constexpr const char* kVersion = PHALANX_VERSION;

}  // namespace phalanx
