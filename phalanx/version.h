// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/base/version.h"  // IWYU pragma: export: PHALANX_VERSION, the version of these headers

namespace phalanx {

/// Returns the version of the library that the program has loaded, which may be newer than its headers.
const char* library_version();

}  // namespace phalanx
