// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace phalanx {

/// An array of bytes, row-major.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// Returns the offset of value `index` of an array of `rank` dimensions in its file, before compression.
constexpr std::int64_t idx_offset(int rank, std::int64_t index) { return 4 + 4 * rank + index; }

/// Reads an IDX file of unsigned bytes with `rank` dimensions, plain or compressed by gzip:
///
///     offset 0             00 00 08 <rank>   zero, zero, the type "unsigned byte", the number of dimensions
///     offset 4             rank sizes, big-endian 32-bit
///     offset 4 + 4 * rank  the values
///
/// The file must be exactly that. Throws DataError, which names the file and the offset (before compression) of the
/// problem: a missing file, another magic number, type or rank, a size of 0, a file that is too short or too long, or a
/// damaged stream. Memory use grows with the actual file size, never with the size that its header claims.
IdxArray read_idx(const std::filesystem::path& path, int rank);

}  // namespace phalanx
