// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// A number that tells contiguous tensors apart by their bits, which are copied to the CPU if they are elsewhere: a
/// changed sign, two elements exchanged or a NaN of another kind change it. A weighted sum of 32-bit words, one pass
/// over the memory. The same on all machines of one byte order; not for adversaries.
std::uint64_t digest(const at::Tensor& tensor);

}  // namespace phalanx
