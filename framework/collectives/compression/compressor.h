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

/// A run of float32 elements, and the parameters that lie in it, one behind the other; what is between two of them
/// counts as one without a shape, [n].
struct BucketLayout {
  std::int64_t elements = 0;
  std::vector<std::vector<std::int64_t>> shapes{};  // of the parameters; empty: not known
};

/// One compression of one gradient bucket on one rank, with what it remembers from one reduction to the next.
///
/// A lossy one corrects its error (Karimireddy et al.: Error Feedback Fixes SignSGD and other Gradient Compression
/// Schemes, 2019): what a reduction leaves out is kept on this rank and added to its next tensor. So over many steps
/// all of every gradient is delivered, only some of it late. Rounding to fp16 and bf16 alone is not fed back.
///
/// The first `start_after` reductions may go uncompressed: a run's first gradients are large and soon out of date, and
/// some compressions deliver them late.
///
/// Numbers that are not finite are delivered as such, in every element that shares a scale or a matrix with them, and
/// are not remembered.
///
/// Used by one thread at a time, with the same group each time. After a CommError its memory may miss a step.
class Compressor {
 public:
  /// Throws std::invalid_argument where the shapes do not have as many elements as the layout.
  explicit Compressor(BucketLayout layout, std::int64_t start_after = 0);
  virtual ~Compressor() = default;

  /// Replaces `tensor` by about the mean over all ranks, bitwise the same on all, and returns the bytes that this rank
  /// put on the wire, as Wire counts them. Collective; blocks, so it belongs into a body of Communicator::run(). With
  /// one rank it changes nothing.
  ///
  /// `tensor`: float32, contiguous, with as many elements as the layout, else std::invalid_argument. Values of one
  /// bucket: passing another one's mixes up what is remembered.
  std::int64_t all_reduce_mean(Communicator& group, const at::Tensor& tensor);

  /// What it remembers, complete between two reductions; as many tensors at any time. `group`: as in all_reduce_mean().
  virtual StateDict state(const Communicator& /*group*/) { return {}; }

 protected:
  const BucketLayout& layout() const { return layout_; }
  std::int64_t start_after() const { return start_after_; }

  /// How many reductions came before the current one, [1] int64: for the state() of those whose exchange depends on it.
  const at::Tensor& steps() const { return steps_; }

 private:
  /// The same for more than one rank and at least one element, after the first `start_after`; `tensor` is [n] without
  /// autograd.
  virtual void exchange(Wire& wire, at::Tensor tensor) = 0;

  BucketLayout layout_;
  std::int64_t start_after_;
  at::Tensor steps_;
};

/// Compressions by name. The same layout and fields on all ranks give compressors that fit together.
using Compressors = Registry<std::unique_ptr<Compressor>(const BucketLayout&)>;

}  // namespace phalanx
