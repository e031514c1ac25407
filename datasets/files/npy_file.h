#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// An array of numbers, row-major.
struct NpyArray {
  std::vector<std::int64_t> shape{};
  std::vector<double> values{};
  bool bytes = false;  // unsigned ones
};

/// Reads a file as numpy.save writes it, or one array of a file as numpy.savez and savez_compressed write it: `array`,
/// its name there, is empty for the former. Numbers are bool, or signed, unsigned or floating-point ones of up to 64
/// bits, little-endian, in C order. Throws DataError that names the file and the offset of whatever is wrong.
///
///     .npy: offset 0  93 "NUMPY"  major  minor  length of the header, 16 bits (major 1) or 32 (2, 3)
///           then      {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  and the numbers
///     .npz: a ZIP archive with NAME.npy for each array, stored or deflated
NpyArray read_npy(const std::filesystem::path& path, const std::string& array = "");

}  // namespace phalanx
