// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/optim/optimizer.h"
#include "framework/observe/best_effort.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Writes digests of what a rank computes to a file, so that two runs that should be equal can be compared
/// (//tools:diff_runs). Each line has a step, from 1, a phase, a digest of 16 hexadecimal digits and the name of a
/// tensor, separated by tabs:
///
///   batch        inputs, targets and weights of the rank's share, as the step gets them
///   outputs      of the model, on ranks that have them
///   loss         of the rank's share
///   gradients    as the strategy leaves them: those that this rank updates with, by parameter
///   parameters   those that this rank updates, after the step
///
/// Steps are flushed one by one. A run that resumes removes the lines of later steps and goes on. A file that cannot be
/// written is reported once, and training goes on.
class StepDigests {
 public:
  /// `every`: digests of every n-th step; 0: none.
  StepDigests(std::int64_t every, std::string folder, int rank);

  /// Returns an optimizer that takes the digests of the gradients and passes all calls on, or `optimizer` itself if
  /// there are to be no digests. This object must outlive it.
  std::unique_ptr<Optimizer> watch(std::unique_ptr<Optimizer> optimizer);

  /// Adds the hooks. The object must outlive the engine.
  void attach(Engine& engine);

  /// Returns true if digests are taken in the current step.
  bool due() const { return due_; }

  /// Adds the digest of a tensor; an undefined one is skipped. Copies tensors of devices to the CPU.
  void add(const char* phase, const std::string& name, const at::Tensor& tensor);

  /// Adds the digests of the parameters, or parts of parameters, in `run`, which is the values or gradients of a slice.
  void add(const char* phase, const std::vector<Segment>& segments, const at::Tensor& run);

 private:
  void start(std::int64_t step);
  void flush();

  const std::int64_t every_;
  const std::string folder_, path_;
  bool due_ = false;
  BestEffort best_effort_;
  std::int64_t step_ = 0;
  std::string lines_;  // of the current step
};

}  // namespace phalanx
