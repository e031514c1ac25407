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

/// Where value `index` of an array of `rank` dimensions lies in its file, before compression.
constexpr std::int64_t idx_offset(int rank, std::int64_t index) { return 4 + 4 * rank + index; }

/// Reads an IDX file of unsigned bytes with `rank` dimensions, plain or compressed by gzip:
///
///     offset 0             00 00 08 <rank>   zero, zero, the type "unsigned byte", the number of dimensions
///     offset 4             rank sizes, big-endian 32-bit
///     offset 4 + 4 * rank  the values
///
/// The file must be exactly that. Throws DataError that names the file and the offset (before compression) of whatever
/// is wrong: no such file, another magic, type or rank, a size of 0, a file too short or too long, a damaged stream.
/// Memory grows with what the file really holds, never with what its header claims.
IdxArray read_idx(const std::filesystem::path& path, int rank);

}  // namespace phalanx
