// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/storage/torch_file.h"

namespace phalanx {

/// Weights in any of the common formats:
///
///   X.safetensors              one file
///   X.pt, X.pth, X.bin         a state dict of torch.save() (TorchFile)
///   X.index.json               {"weight_map": {name: file}}, and files of either kind next to it, as Hugging Face does
///   a folder                   with model.safetensors.index.json, model.safetensors, pytorch_model.bin.index.json,
///                              pytorch_model.bin or weights.safetensors; the first of these that exists is used
///
/// Opening reads no elements. Throws a DataError with the file and, if known, the offset.
class WeightsFile {
 public:
  explicit WeightsFile(const std::string& path);

  struct Entry {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
    std::size_t file, index;  // where read() finds the tensor

    std::int64_t bytes() const;
  };

  const std::string& path() const { return path_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the files
  std::size_t files() const { return parts_.size(); }
  at::Tensor read(const Entry& entry) const;

 private:
  struct Part {
    std::optional<SafetensorsFile> safetensors;
    std::optional<TorchFile> torch;
  };

  void add(const std::string& path);
  void add_index(const std::string& path);

  std::string path_;
  std::vector<Part> parts_;
  std::vector<Entry> entries_;
};

NamedTensors load_weights(const std::string& path);

/// Writes .safetensors or .pt (.pth, .bin), depending on the name, and returns the names of all files that it wrote. If
/// `shard_bytes` is above 0, which only .safetensors supports, writes X-00001-of-00002.safetensors and so on, each with
/// at most that many bytes of tensors (a single tensor may be larger), and X.safetensors.index.json. Throws DataError,
/// or ConfigError for a name with another suffix.
std::vector<std::string> save_weights(const std::string& path, const NamedTensors& tensors,
                                      std::int64_t shard_bytes = 0);

}  // namespace phalanx
