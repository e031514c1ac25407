// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/base/batch.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The samples of one class with the same score. They share one threshold, so their order does not matter.
struct Threshold {
  std::int64_t positives = 0, negatives = 0;  // relevant samples, and others
};
using Thresholds = std::vector<Threshold>;  // the largest score first

/// Returns the sum over thresholds of the gain in recall times the precision; 0 without positives.
double average_precision(const Thresholds& thresholds);

/// Returns the area under the curve of true against false positive rate, which is the probability that a positive has a
/// higher score than a negative, where equal scores count half. NaN without positives or without negatives.
double area_under_roc(const Thresholds& thresholds);

std::int64_t positives_of(const Thresholds& thresholds);
std::int64_t negatives_of(const Thresholds& thresholds);

/// All scores of all samples, with their relevance: 9 bytes per sample and class on each rank. take() collects the
/// scores of all ranks on each rank.
class Scores {
 public:
  void add(const Batch& batch, const Step::Result& result);

  /// Returns one entry per class, over the samples of all ranks, or none if no rank has added any. Starts again.
  /// Collective.
  std::vector<Thresholds> take(Communicator& group);

  /// Returns columns, scores, and relevance. See Meter.
  std::vector<at::Tensor> state() const;
  void merge_state(const std::vector<at::Tensor>& state);

 private:
  std::int64_t columns_ = 0;
  std::vector<at::Tensor> scores_, relevant_;  // flat, by batch: double and bool
};

}  // namespace phalanx
