// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "framework/collectives/compression/block_code.h"

namespace phalanx {

/// Returns the code that stores a block of B elements as a float32 scale s = max |x| / 127 and round(x / s) for each
/// element, in B + 4 bytes. The error is at most s / 2.
std::unique_ptr<const BlockCode> make_int8_code(std::int64_t block);

}  // namespace phalanx
