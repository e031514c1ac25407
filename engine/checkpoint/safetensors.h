#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes tensors in the safetensors format, which Python reads with safetensors.torch.load_file():
/// 8 bytes length of the header (little-endian), a JSON header {name: {dtype, shape, data_offsets}}, the elements.
/// Float32, float64, int64, int32 and uint8, on the CPU. The file appears whole or not at all. Throws DataError.
void save_safetensors(const std::string& path, const NamedTensors& tensors);

/// Reads them back, in the order of the file. Throws DataError naming file and offset for anything malformed.
NamedTensors load_safetensors(const std::string& path);

}  // namespace phalanx
