// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"

namespace phalanx {

/// Writes tensors in the safetensors format, which Python reads with safetensors.torch.load_file(): the length of the
/// header in 8 bytes (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, and the elements. Supports
/// floating-point numbers of 16, 32 and 64 bits, bfloat16, integers of 8 to 64 bits, uint8 and bool, on the CPU. The
/// file appears whole or not at all. Throws DataError.
void save_safetensors(const std::string& path, const NamedTensors& tensors);

/// Writes the same file into memory, replacing the contents of `file`. Allocates nothing if `file` already holds the
/// same tensors. `path` is for messages.
void lay_out_safetensors(const std::string& path, const NamedTensors& tensors, std::string& file);

/// Reads the tensors of a file, in the order of the header. Throws a DataError with file and offset for anything
/// malformed, including tensors that overlap or have the same name, and bytes that belong to no tensor.
NamedTensors load_safetensors(const std::string& path);

/// A file from which single tensors are read: opening it reads only the header. Throws DataError like
/// load_safetensors().
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;  // bytes, from the end of the header
  };

  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the file
  at::Tensor read(const Entry& entry) const;

  /// Returns the offset in the file at which the elements of a tensor begin, for callers that read parts of it.
  std::uint64_t offset_of(const Entry& entry) const { return data_begin_ + entry.begin; }

 private:
  std::string path_;
  std::uint64_t data_begin_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace phalanx
