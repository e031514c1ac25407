#include "engine/merged_results.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>

namespace phalanx {

// A loss is a float and a part below 2^29 rows: their product is exact.
void MergedResults::add(const Step::Result& result, std::int64_t valid) {
  outputs_.push_back(result.output);
  loss_sums_.push_back(result.loss.item<double>() * static_cast<double>(valid));
  valid_ += valid;
}

Step::Result MergedResults::whole() const {
  const double sum = std::accumulate(loss_sums_.begin(), loss_sums_.end(), 0.0);
  return {.output = at::concat(outputs_),
          .loss = at::scalar_tensor(sum / static_cast<double>(std::max<std::int64_t>(valid_, 1)), at::kFloat),
          .loss_sums = at::tensor(loss_sums_, at::kDouble)};
}

Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end) {
  Batch part = batch;
  part.input = batch.input.narrow(0, begin, end - begin);
  part.target = batch.target.narrow(0, begin, end - begin);
  part.valid = std::clamp<std::int64_t>(batch.valid - begin, 0, end - begin);
  return part;
}

void tell_step(const Step::Watch& watch, const Step::Result& result) {
  tell_evaluation(watch, result);
  watch(Stage::kBackwardCriterion, result);
  watch(Stage::kBackward, result);
}

void tell_evaluation(const Step::Watch& watch, const Step::Result& result) {
  watch(Stage::kForward, result);
  watch(Stage::kForwardCriterion, result);
}

}  // namespace phalanx
