// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "models/exported/program_tensor.h"

namespace phalanx {
struct BatchStatistics;  // framework/parallel/sync_batch_norm.h
}

namespace phalanx::exported {

/// A program of torch.export (training IR), checked once and run node by node through LibTorch's dispatcher. So
/// everything that works with LibTorch's operators works with the program: autograd, autocast, profilers. Values are
/// released after their last use. Not thread-safe.
class Program {
 public:
  /// Throws ConfigError for files that cannot be read and for unsupported parts; the message has the node and its line
  /// of Python.
  explicit Program(const std::string& path);
  ~Program();

  const std::vector<ProgramTensor>& inputs() const;
  const std::vector<ProgramTensor>& outputs() const;
  std::int64_t min_rows() const;  // minimum number of rows of a batch

  /// Returns true if batch norm uses the statistics of the batch in training.
  bool uses_batch_statistics() const;

  NamedTensors parameters() const;  // each once, even if several names are tied
  NamedTensors buffers() const;     // persistent ones

  /// In evaluation, skips the training behaviour of the program: dropout and batch statistics.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, bool training);

  /// From now on, batch norm in training computes statistics over the samples that `statistics` describes. Returns the
  /// number of such layers.
  std::int64_t synchronize(std::shared_ptr<const BatchStatistics> statistics);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace phalanx::exported
