// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace phalanx {

/// Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes, or of bytes that follow others whose checksum is
/// `before`. Detects every single flipped bit. Processes several GB/s if the processor has an instruction for it (SSE
/// 4.2); other processors compute the same value by table.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// Computes the same checksum by table, on any processor.
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace phalanx
