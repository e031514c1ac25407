// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"

namespace phalanx::torchscript {

/// A program of torch.jit.script or torch.jit.trace, checked once. Its operators are run one by one through LibTorch's
/// dispatcher, and no passes optimize or fuse them: so results do not depend on how often it ran, and whatever works on
/// LibTorch's operators works on it (autograd, autocast, profilers). One thread at a time.
class Script {
 public:
  /// Throws ConfigError for files that cannot be read, and for programs that cannot be trained, naming the line of
  /// Python where there is one.
  explicit Script(const std::string& path);
  ~Script();

  /// The number of inputs of forward() without a default, and with those that have one.
  std::size_t least_inputs() const;
  std::size_t most_inputs() const;

  /// Tensors that require a gradient, and all other tensors of the modules; each once, even if several names are tied.
  const NamedTensors& parameters() const;
  const NamedTensors& buffers() const;

  /// Calls of batch norm in forward(), which take statistics of what this process has of a batch.
  std::int64_t batch_norms() const;

  void train(bool on);

  /// Throws ConfigError where an output is no tensor.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace phalanx::torchscript
