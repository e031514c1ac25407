// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"

namespace phalanx {

/// Writes tensors in the safetensors format, which Python reads with safetensors.torch.load_file():
/// 8 bytes length of the header (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, the elements.
/// Floating-point numbers of 16, 32 and 64 bits, bfloat16, integers of 8 to 64 bits, uint8 and bool, on the CPU. The
/// file appears whole or not at all. Throws DataError.
void save_safetensors(const std::string& path, const NamedTensors& tensors);

/// The same file in memory, in place of what `file` holds: of the same tensors as before, nothing is allocated. `path`
/// is for messages.
void lay_out_safetensors(const std::string& path, const NamedTensors& tensors, std::string& file);

/// Reads them back, in the order of the header. Throws DataError naming file and offset for anything malformed: also
/// for tensors that overlap or have one name, and for bytes that belong to no tensor.
NamedTensors load_safetensors(const std::string& path);

/// A file of which some tensors are wanted: opening reads the header alone. Throws DataError as load_safetensors().
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;  // in the part after the header
  };

  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the file
  at::Tensor read(const Entry& entry) const;

  /// Where the elements of a tensor begin in the file, for those who read parts of it.
  std::uint64_t offset_of(const Entry& entry) const { return data_begin_ + entry.begin; }

 private:
  std::string path_;
  std::uint64_t data_begin_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace phalanx
