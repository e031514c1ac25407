// SPDX-License-Identifier: Apache-2.0
// The share of rows whose class is not among the k classes with the highest scores (torchnet's ClassErrorMeter). If
// scores are equal, the lower class comes first; a row whose score for the class is NaN is an error. Output [n, ...,
// classes], target [n, ...] int64.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include "engine/meters/labels.h"
#include "engine/meters/mean.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ClassErrorConfig {
  std::int64_t k = 1;

  template <class V>
  void visit(V& v) {
    v("k", k, "number of top classes among which the true one must be", config::at_least(1));
  }
};

void measure_class_error(const Batch& batch, const Step::Result& result, std::int64_t k, Mean& mean) {
  const auto [scores, target] = classes_of(batch, result);
  if (k > scores.size(1)) {
    throw ConfigError("class_error: k is " + std::to_string(k) + ", but there are " + std::to_string(scores.size(1)) +
                      " classes");
  }
  const at::Tensor column = target.unsqueeze(1), own = scores.gather(1, column);
  const at::Tensor lower = at::arange(scores.size(1), target.options()).lt(column);  // [m, K]
  const at::Tensor not_above = scores.le(own);                                       // NaN is above everything
  const at::Tensor before = not_above.logical_not().logical_or(scores.eq(own).logical_and(lower)).sum(1);
  mean.add(before.ge(k).sum().item<double>(), target.numel());
}

const bool class_error_registered = Meters::global().add<ClassErrorConfig>(
    "class_error", "share of samples whose class is not among the k with the highest scores",
    [](const ClassErrorConfig& config) {
      return std::make_unique<MeanMeter>("class_error_top" + std::to_string(config.k),
                                         [k = config.k](const auto& batch, const auto& result, Mean& mean) {
                                           measure_class_error(batch, result, k, mean);
                                         });
    });

}  // namespace
}  // namespace phalanx
