// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// An array of numbers. Its bytes are not copied: they are in a mapped file, or in memory if they were compressed.
/// Copies of the array share them. Thread-safe for reading.
class NpyArray {
 public:
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t size() const { return size_; }        // count of numbers
  bool is_of_bytes() const { return is_of_bytes_; }  // unsigned bytes

  /// Returns number `index` of the array in row-major order.
  double operator[](std::int64_t index) const;

 private:
  friend class NpyReader;

  std::vector<std::int64_t> shape_{};
  std::int64_t size_ = 0;
  std::int64_t item_ = 1;  // bytes of a number
  bool is_of_bytes_ = false;
  bool columns_first_ = false;  // Fortran order
  double (*convert_)(const char* number) = nullptr;
  std::string_view numbers_{};
  std::shared_ptr<const void> owner_{};  // of the bytes of `numbers_`
};

/// Reads a file written by numpy.save, or one array of a file written by numpy.savez or savez_compressed. `array` is
/// its name there, empty for numpy.save. Numbers are bool, signed or unsigned integers of up to 64 bits, or
/// floating-point numbers of 16, 32 or 64 bits, little-endian or big-endian, in C or Fortran order. Throws DataError,
/// which names the file and the offset of the problem.
///
///     .npy: offset 0  93 "NUMPY"  major  minor  length of the header, 16 bits (major 1) or 32 (2, 3)
///           then      {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  and the numbers
///     .npz: a ZIP archive with NAME.npy for each array, stored or deflated
NpyArray read_npy(const std::filesystem::path& path, const std::string& array = "");

}  // namespace phalanx
