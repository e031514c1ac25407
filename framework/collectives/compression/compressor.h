// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/registry.h"
#include "framework/base/state_dict.h"
#include "framework/collectives/compression/wire.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// A run of float32 elements and the shapes of the parameters that lie in it, one after the other. Padding between two
/// parameters counts as a parameter of shape [n].
struct BucketLayout {
  std::int64_t elements = 0;
  std::vector<std::vector<std::int64_t>> shapes{};  // of the parameters; empty: unknown
};

/// The compressor of one gradient bucket on one rank, with the state that it keeps between reductions.
///
/// A lossy compressor corrects its error (Karimireddy et al.: Error Feedback Fixes SignSGD and other Gradient
/// Compression Schemes, 2019): it keeps the error of a reduction on this rank and adds it to the next tensor. Over many
/// steps every gradient is delivered completely, but parts of it late. Only the rounding of fp16 and bf16 is not fed
/// back.
///
/// The first `start_after` reductions may be uncompressed: the first gradients of a run are large and soon out of date,
/// and some compressors deliver them late.
///
/// Numbers that are not finite are delivered as such, in every element that shares a scale or a matrix with them. They
/// are not remembered.
///
/// Not thread-safe; must be used with the same group each time. After a CommError its state may lack a step.
class Compressor {
 public:
  /// Throws std::invalid_argument if the shapes do not have as many elements as the layout.
  explicit Compressor(BucketLayout layout, std::int64_t start_after = 0);
  virtual ~Compressor() = default;

  /// Replaces `tensor` by an approximation of the mean over all ranks, bitwise the same on all of them, and returns the
  /// bytes that this rank has sent, as Wire counts them. Collective and blocking, so it must be called in a body of
  /// Communicator::run(). Does nothing in a group of one rank.
  ///
  /// `tensor` must be float32 and contiguous, and have as many elements as the layout; otherwise std::invalid_argument
  /// is thrown. It must always hold values of the same bucket, because the remembered error of one bucket must not be
  /// added to another.
  std::int64_t all_reduce_mean(Communicator& group, const at::Tensor& tensor);

  /// Returns the state that is kept between two reductions. The number of tensors never changes. `group` is the same as
  /// in all_reduce_mean().
  virtual StateDict state(const Communicator& /*group*/) { return {}; }

 protected:
  const BucketLayout& layout() const { return layout_; }
  std::int64_t start_after() const { return start_after_; }

  /// Returns the number of earlier reductions, [1] int64. It belongs in the state() of compressors whose exchange
  /// depends on it.
  const at::Tensor& steps() const { return steps_; }

 private:
  /// Performs all_reduce_mean() for more than one rank and at least one element, after the first `start_after`
  /// reductions. `tensor` is [n] and has no autograd.
  virtual void exchange(Wire& wire, at::Tensor tensor) = 0;

  BucketLayout layout_;
  std::int64_t start_after_;
  at::Tensor steps_;
};

/// The registry of compressions by name. Compressors with the same layout and fields work together across ranks.
using Compressors = Registry<std::unique_ptr<Compressor>(const BucketLayout&)>;

}  // namespace phalanx
