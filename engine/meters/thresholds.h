// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/base/batch.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The samples of one class that have one score. Equal scores are one threshold, so that no order among them matters.
struct Threshold {
  std::int64_t positives = 0, negatives = 0;  // relevant samples, and others
};
using Thresholds = std::vector<Threshold>;  // the largest score first

/// Sum over thresholds of recall gained times precision there; 0 without positives.
double average_precision(const Thresholds& thresholds);

/// Area under the curve of true against false positive rate: the chance that a positive has a larger score than a
/// negative, equal scores counting half. NaN without positives or without negatives.
double area_under_roc(const Thresholds& thresholds);

std::int64_t positives_of(const Thresholds& thresholds);
std::int64_t negatives_of(const Thresholds& thresholds);

/// All scores of all samples, with whether they are relevant: 9 bytes per sample and class on each rank, and at the end
/// those of all ranks on each.
class Scores {
 public:
  void add(const Batch& batch, const Step::Result& result);

  /// One per class, of all ranks' samples; none where nobody has added. Starts anew. Collective.
  std::vector<Thresholds> take(Communicator& group);

  /// Columns, scores, whether they are relevant. See Meter.
  std::vector<at::Tensor> state() const;
  void absorb(const std::vector<at::Tensor>& state);

 private:
  std::int64_t columns_ = 0;
  std::vector<at::Tensor> scores_, relevant_;  // flat, by batch: double and bool
};

}  // namespace phalanx
