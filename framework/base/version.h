// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The version of Phalanx, major.minor.patch, as a literal that can be joined to other literals.
#define PHALANX_VERSION "0.1.0"

namespace phalanx {

inline constexpr const char* kVersion = PHALANX_VERSION;

}  // namespace phalanx
