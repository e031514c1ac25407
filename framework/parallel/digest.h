// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// Returns a hash of the bits of a contiguous tensor, which is copied to the CPU if it is on a device. A changed sign,
/// two exchanged elements or another kind of NaN change the hash. It is a weighted sum of 32-bit words, computed in one
/// pass over memory. It is the same on all machines of one byte order, and does not resist deliberate collisions.
std::uint64_t digest(const at::Tensor& tensor);

}  // namespace phalanx
