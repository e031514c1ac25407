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

/// A program of torch.export (training IR), checked once and run node by node through LibTorch's dispatcher, so that
/// whatever works on LibTorch's operators works on it: autograd, autocast, profilers. Values are released after their
/// last use. One thread at a time.
class Program {
 public:
  /// Throws ConfigError for files that cannot be read, and for parts that are not supported, naming the node and its
  /// line of Python.
  explicit Program(const std::string& path);
  ~Program();

  const std::vector<ProgramTensor>& inputs() const;
  const std::vector<ProgramTensor>& outputs() const;
  std::int64_t least_rows() const;  // of a batch

  /// Returns true if batch norm takes statistics of the batch in training.
  bool uses_batch_statistics() const;

  NamedTensors parameters() const;  // each once, also where several names are tied
  NamedTensors buffers() const;     // persistent ones

  /// In evaluation, what the program does in training is left out: dropout, statistics of the batch.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, bool training);

  /// From now on batch norm in training takes statistics as `statistics` says. Returns the number of such layers.
  std::int64_t synchronize(std::shared_ptr<const BatchStatistics> statistics);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace phalanx::exported
