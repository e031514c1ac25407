// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Merges the results of the parts of a batch, which are computed one after the other.
class MergedResults {
 public:
  void add(const Step::Result& result);

  /// Returns the concatenated outputs, the mean loss over everything that counts, and the loss sum of each part. At
  /// least one part must have been added.
  Step::Result whole() const;

 private:
  std::vector<Tensors> outputs_;         // by output, then by part
  VocabularyShardPtr vocabulary_shard_;  // of all parts
  std::vector<double> loss_sums_;
  double weight_ = 0;
  at::ScalarType dtype_ = at::kFloat;  // of the loss
};

/// A watcher that ignores everything, for steps inside of a step.
inline void ignore_stages(Stage, const Step::Result&) {}

/// Report all stages of a completed step, or of an evaluation.
void report_step(const Step::Watch& watch, const Step::Result& result);
void report_evaluation(const Step::Watch& watch, const Step::Result& result);

}  // namespace phalanx
