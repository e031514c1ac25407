// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <utility>
#include <vector>

#include "framework/base/batch.h"
#include "framework/base/metrics.h"
#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// A metric that is measured over many samples, on all ranks together.
///
/// The metrics of several ranks are the same, bit for bit, as the metrics of one rank that sees all samples. Counts are
/// integers, sums are exact (ExactSum) and rounded once, and meters that need all scores gather them and do not depend
/// on their order. Losses are an exception, since each value is the loss that a rank computed over its share; adding
/// the shares is exact.
///
/// Padding rows of a batch do not count. Must be used by one thread at a time.
class Meter {
 public:
  virtual ~Meter() = default;

  /// Adds this rank's share of a batch. Throws ConfigError if target and output are not of the kind that the meter
  /// measures.
  virtual void add(const Batch& batch, const Step::Result& result) = 0;

  /// Called instead of add() for a batch whose results are on another rank of the group.
  virtual void skip_batch() {}

  /// Returns the metrics over everything that the ranks of `group` have added since the last take(), and starts again.
  /// A metric is 0 if nothing was added, and NaN with a warning if it is undefined for the samples. Collective.
  virtual Metrics take(Communicator& group) = 0;

  /// The meter's state on this rank since the last take(), for checkpoints. The number of tensors never changes; they
  /// may be empty.
  using State = std::vector<at::Tensor>;
  virtual State state() = 0;

  /// Adds the state of a meter with the same config, from this rank or another. When a run resumes, the state of each
  /// former rank is merged by one rank and skipped by the others, in the same order on all ranks.
  virtual void merge_state(const State& state) = 0;
  virtual void skip_state(const State& /*state*/) {}
};

/// Concatenates the parts that samples have added to a State along the first dimension. Returns an empty tensor of
/// `type` if `parts` is empty.
inline at::Tensor joined(std::vector<at::Tensor> parts, at::ScalarType type) {
  parts.push_back(at::empty({0}, type));
  return at::concat(parts);
}

using Meters = Registry<std::unique_ptr<Meter>()>;

}  // namespace phalanx
