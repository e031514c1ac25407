// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/collectives/recording/named_memory.h"

namespace phalanx::recording {

/// The CRC-32C of a tensor, and of each named piece of it.
struct InputDigest {
  std::uint32_t sum = 0;
  std::vector<std::uint32_t> pieces{};
};

/// Returns the digest of a contiguous tensor on the CPU; an undefined one has no bytes.
InputDigest digest_of(const at::Tensor& tensor, const std::vector<NamedMemory::Piece>& pieces);

/// Returns the pieces of a tensor, which may be undefined.
std::vector<NamedMemory::Piece> pieces_of(const at::Tensor& tensor, const NamedMemory& memory);

}  // namespace phalanx::recording
