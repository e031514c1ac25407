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
  /// A part whose result is of `valid` rows that count, > 0 but for the padding of an empty share.
  void add(const Step::Result& result, std::int64_t valid);

  /// Outputs one behind the other, the mean loss over all rows that count, and what each part adds to it. At least one
  /// part has been added.
  Step::Result whole() const;

 private:
  std::vector<at::Tensor> outputs_;
  std::vector<double> loss_sums_;
  std::int64_t valid_ = 0;
};

/// Rows [begin, end) of a batch. It shares their memory.
Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end);

/// For steps inside of a step.
inline void unwatched(Stage, const Step::Result&) {}

/// Tells who watches of a step that is over, or of an evaluation.
void tell_step(const Step::Watch& watch, const Step::Result& result);
void tell_evaluation(const Step::Watch& watch, const Step::Result& result);

}  // namespace phalanx
