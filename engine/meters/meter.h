// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/meters/readings.h"
#include "framework/base/batch.h"
#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Something that is measured over many samples, on all ranks together.
///
/// What ranks measure together is what one rank that saw all samples would read, bit for bit: counts are integers, sums
/// are exact (ExactSum) and rounded once, and what needs all scores gathers them and does not depend on their order.
/// A loss is the exception, as its value is what a rank computed over its share: adding the shares is exact.
///
/// Padding rows of a batch do not count. One thread at a time.
class Meter {
 public:
  virtual ~Meter() = default;

  /// This rank's share of a batch. Throws ConfigError where target and output are not of the kind that it measures.
  virtual void add(const Batch& batch, const Step::Result& result) = 0;

  /// In place of add(), for a batch whose results another rank of the group has.
  virtual void add_nothing() {}

  /// The readings over all that the ranks of `group` have added since the last take(), and starts anew. 0 where nothing
  /// was added, NaN and a warning where what was added has no such value. Collective.
  virtual Readings take(Communicator& group) = 0;

  /// What this rank has added since the last take(), for checkpoints; as many tensors at any time, which may be empty.
  using State = std::vector<at::Tensor>;
  virtual State state() = 0;

  /// Adds what a meter of the same config had added, on this or another rank. Going on, each of the ranks that were is
  /// absorbed by one rank and passed over by the others, all in the same order.
  virtual void absorb(const State& state) = 0;
  virtual void pass_over(const State& /*state*/) {}
};

/// Returns what samples have added to a State, one after the other along the first dimension; empty, of `type`, where
/// `parts` is empty.
inline at::Tensor joined(std::vector<at::Tensor> parts, at::ScalarType type) {
  parts.push_back(at::empty({0}, type));
  return at::concat(parts);
}

using Meters = Registry<std::unique_ptr<Meter>()>;

}  // namespace phalanx
