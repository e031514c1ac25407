// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// An array of numbers, whose bytes stay where they are: mapped from a file, or in memory if they were compressed.
/// Copies share them. Thread-safe for reading.
class NpyArray {
 public:
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const { return size_; }        // numbers
  bool is_of_bytes() const { return is_of_bytes_; }  // unsigned ones

  /// Returns number `index` of the array in row-major order.
  double operator[](std::int64_t index) const;

 private:
  friend class NpyReader;

  std::vector<std::int64_t> shape_{};
  std::int64_t size_ = 0;
  std::int64_t item_ = 1;  // bytes of a number
  bool is_of_bytes_ = false;
  bool columns_first_ = false;  // Fortran's order
  double (*convert_)(const char* number) = nullptr;
  std::string_view numbers_{};
  std::shared_ptr<const void> owner_{};  // of their bytes
};

/// Reads a file as numpy.save writes it, or one array of a file as numpy.savez and savez_compressed write it: `array`,
/// its name there, is empty for the former. Numbers are bool, or signed or unsigned integers of up to 64 bits, or
/// floating-point numbers of 16, 32 or 64 bits, little-endian or big-endian, in C or Fortran order. Throws DataError
/// that names the file and the offset of whatever is wrong.
///
///     .npy: offset 0  93 "NUMPY"  major  minor  length of the header, 16 bits (major 1) or 32 (2, 3)
///           then      {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  and the numbers
///     .npz: a ZIP archive with NAME.npy for each array, stored or deflated
NpyArray read_npy(const std::filesystem::path& path, const std::string& array = "");

}  // namespace phalanx
