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

/// A program of torch.jit.script or torch.jit.trace, checked once. Its operators run one by one through LibTorch's
/// dispatcher, without optimizing or fusing passes. So results do not depend on the number of runs, and everything that
/// works with LibTorch's operators works with the program (autograd, autocast, profilers). Not thread-safe.
class Script {
 public:
  /// Throws ConfigError for files that cannot be read and for programs that cannot be trained; the message has the line
  /// of Python, if known.
  explicit Script(const std::string& path);
  ~Script();

  /// Return the number of inputs of forward() without defaults, and including the ones with defaults.
  std::size_t min_inputs() const;
  std::size_t max_inputs() const;

  /// Return the tensors that require a gradient, and all other tensors of the modules. Each appears once, even if
  /// several names are tied.
  const NamedTensors& parameters() const;
  const NamedTensors& buffers() const;

  /// Returns the number of batch-norm calls in forward(), whose statistics cover only this process's part of a batch.
  std::int64_t batch_norms() const;

  void train(bool on);

  /// Throws ConfigError if an output is not a tensor.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace phalanx::torchscript
