// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/json.h"
#include "framework/base/storage/stored_zip.h"

namespace phalanx::exported {

/// A file written by torch.export.save: a ZIP archive with the graph as JSON and one record for each storage of
/// weights.
class Archive {
 public:
  /// Throws ConfigError if the file cannot be read or is not such an archive. The checksum of each record is verified
  /// when it is read.
  explicit Archive(const std::string& path);

  /// Returns the serialized program (torch/_export/serde/schema.py). Throws ConfigError unless its schema has version
  /// 8.
  nlohmann::ordered_json program() const;

  /// Return the parameters and buffers, or the constants, by name. Tied names share one tensor, and learned parameters
  /// require a gradient. Throw ConfigError for pickled tensors and DataError for malformed ones.
  std::map<std::string, at::Tensor> weights() const { return tensors("weights"); }
  std::map<std::string, at::Tensor> constants() const { return tensors("constants"); }

 private:
  std::string record(const std::string& name) const;
  JsonValue parsed(const std::string& name) const;
  at::Tensor memory_of(const std::string& name) const;
  std::map<std::string, at::Tensor> tensors(const std::string& kind) const;

  std::string path_;
  StoredZip zip_;
  std::string root_;  // the folder in the archive, with a trailing slash
};

/// Returns the dtype of a serialized ScalarType, or an undefined one if it is not supported.
at::ScalarType dtype_of(int serialized);

}  // namespace phalanx::exported
