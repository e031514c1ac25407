// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <vector>

#include "framework/testing/fake_device/access_table.h"

namespace phalanx::testing {

/// Returns a CPU tensor with the same elements: a view of the mirror, or the tensor itself if it is on the CPU.
at::Tensor mirrored(const at::Tensor& tensor);

/// Returns the memory that a tensor of a fake device spans, or nothing for other tensors.
std::optional<Access> access_of(const at::Tensor& tensor, bool writes);

/// A call of an operator with tensors of a fake device, which the CPU's kernel computes on the mirrors of their memory.
/// It does not own that memory, as a kernel on a GPU.
class OperatorCall {
 public:
  /// Approximations that kernels of GPUs make and those of the CPU do not.
  struct Inexact {
    bool tf32 = false;        // factors are rounded to TF32
    bool reciprocal = false;  // a division by a number is a multiplication by its reciprocal
  };

  /// Takes the arguments from the end of `stack`.
  OperatorCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  const std::vector<c10::IValue>& arguments() const { return arguments_; }

  /// The memory that the arguments span, without results that the call allocates.
  std::vector<Access> accesses() const;

  /// Computes, and keeps the results in memory of the device, which it allocates on the current device and stream.
  void run();

  /// Allocates the results without computing them. Returns false if that is not possible, because their sizes depend on
  /// values, or because the operator draws random numbers.
  bool allocate_results();

  /// The results on the device. Those that are arguments are these arguments.
  const std::vector<c10::IValue>& results() const { return results_; }

  /// The memory of the results that the call has allocated.
  std::vector<Access> result_accesses() const;

  /// Returns a function that computes the results again, into the same memory. It owns no memory of the device.
  std::function<void()> recomputation() const;

 private:
  torch::jit::Stack converted(c10::DeviceType type) const;
  c10::IValue own(std::size_t index, const c10::IValue& computed);
  std::optional<std::size_t> argument_of_result(std::size_t index) const;
  bool is_computed_in_place(std::size_t index) const;
  std::vector<std::vector<at::Tensor>> targets() const;

  c10::OperatorHandle op_;
  std::vector<c10::IValue> arguments_;  // as called
  torch::jit::Stack mirrors_;           // the same on the CPU
  Inexact inexact_;
  std::vector<c10::IValue> results_;
};

}  // namespace phalanx::testing
