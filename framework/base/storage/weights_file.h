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

/// Weights in any of the formats that people bring them in:
///
///   X.safetensors              of one file
///   X.pt, X.pth, X.bin         a state dict of torch.save() (TorchFile)
///   X.index.json               {"weight_map": {name: file}}, and files of either kind next to it, as Hugging Face does
///   a folder                   with model.safetensors.index.json, model.safetensors, pytorch_model.bin.index.json,
///                              pytorch_model.bin or weights.safetensors, the first of these that is there
///
/// Opening reads no elements. Throws DataError with file and, where it is known, offset.
class WeightsFile {
 public:
  explicit WeightsFile(const std::string& path);

  struct Entry {
    std::string name;
    at::ScalarType dtype;
    std::vector<std::int64_t> shape;
    std::size_t file, index;  // where read() finds it

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

/// Writes .safetensors or .pt (.pth, .bin), by the name. With `shard_bytes` above 0, which .safetensors alone can have,
/// files of at most so many bytes of tensors (one tensor may be larger), X-00001-of-00002.safetensors and on, and
/// X.safetensors.index.json; the names of all that were written. Throws DataError, and ConfigError for another name.
std::vector<std::string> save_weights(const std::string& path, const NamedTensors& tensors,
                                      std::int64_t shard_bytes = 0);

}  // namespace phalanx
