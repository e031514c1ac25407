// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace phalanx {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes, or of bytes that follow others of checksum `before`. Detects
/// every single flipped bit. Several GB/s where the processor has an instruction for it (SSE 4.2), the same value
/// elsewhere.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

/// The same by table, on any processor.
std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace phalanx
