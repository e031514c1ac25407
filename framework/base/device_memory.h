// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace phalanx {

/// The most bytes that tensors of this process have taken at once on a device; 0 of the CPU, where nobody counts.
std::int64_t peak_bytes(const c10::Device& device);

}  // namespace phalanx
