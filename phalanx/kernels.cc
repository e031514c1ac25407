// SPDX-License-Identifier: Apache-2.0
#include "phalanx/kernels.h"

#include "framework/kernels/kernels.h"

namespace phalanx {

std::string use_kernels() { return kernels::use_kernels(kernels::kAuto).summary(); }

}  // namespace phalanx
