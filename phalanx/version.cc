// SPDX-License-Identifier: Apache-2.0
#include "phalanx/version.h"

namespace phalanx {

const char* library_version() { return kVersion; }

}  // namespace phalanx
