#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace phalanx::exported {

/// A file of torch.export.save: a ZIP archive with the graph as JSON, and one record for each storage of weights.
class Archive {
 public:
  /// Throws ConfigError where the file cannot be read, or is no such archive.
  explicit Archive(const std::string& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// The serialized program (torch/_export/serde/schema.py). Throws ConfigError for another schema than version 8.
  nlohmann::json program() const;

  /// Parameters and buffers, and constants, by name. Tied ones are one tensor; parameters
  /// that are learned require a gradient. Throws ConfigError for what is pickled.
  std::map<std::string, at::Tensor> weights() const { return tensors("weights"); }
  std::map<std::string, at::Tensor> constants() const { return tensors("constants"); }

 private:
  std::string record(const std::string& name) const;
  nlohmann::json parsed(const std::string& name) const;
  std::map<std::string, at::Tensor> tensors(const std::string& kind) const;

  std::string path_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

/// The dtype of a serialized ScalarType; undefined where there is none such here.
at::ScalarType dtype_of(int serialized);

}  // namespace phalanx::exported
