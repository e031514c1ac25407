// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Keeps the gradients of parameters in their buckets, whatever the program does with them: zero_grad() makes grads
/// undefined, after which autograd makes new tensors, and a program may assign another grad.
///
/// These grads are no views in the sense of autograd, unlike those that FlatParameters makes, because
/// torch::optim::Optimizer::zero_grad() detaches grads in place, which LibTorch refuses for views.
class GradientViews {
 public:
  explicit GradientViews(const FlatParameters& parameters);

  /// Moves the grad of a parameter, which autograd has just accumulated, into the bucket, unless it is there.
  void take(std::size_t bucket, std::size_t parameter);

  /// Does the same for all parameters. Parameters without a grad get zeros.
  void take_all();

  /// Makes the grads of these parameters undefined again if they were when take_all() was called last.
  void give_back(const std::set<std::string>& names);

  /// Sets all gradients to zeros that are views of the buckets.
  void zero();

  /// Throws Error if the values of a parameter are not in its bucket any more.
  void require_values_in_buckets() const;

 private:
  struct Entry {
    at::Tensor parameter;
    at::Tensor gradient;  // in the bucket
    const void* values;   // in the bucket
    bool had_none = false;
  };

  static bool take(Entry& entry);

  std::vector<Bucket> buckets_;
  std::vector<std::vector<Entry>> entries_;  // by bucket
};

}  // namespace phalanx
