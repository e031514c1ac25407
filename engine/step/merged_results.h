// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// What the parts of a batch, taken one after the other, come to.
class MergedResults {
 public:
  void add(const Step::Result& result);

  /// Outputs one behind the other, the mean loss over all that counts, and what each part adds to it. At least one part
  /// has been added.
  Step::Result whole() const;

 private:
  std::vector<Tensors> outputs_;  // by output, then by part
  ClassPartsPtr class_parts_;     // of all parts
  std::vector<double> loss_sums_;
  double weight_ = 0;
  at::ScalarType dtype_ = at::kFloat;  // of the loss
};

/// For steps inside of a step.
inline void unwatched(Stage, const Step::Result&) {}

/// Tells who watches of a step that is over, or of an evaluation.
void tell_step(const Step::Watch& watch, const Step::Result& result);
void tell_evaluation(const Step::Watch& watch, const Step::Result& result);

}  // namespace phalanx
