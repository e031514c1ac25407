// SPDX-License-Identifier: Apache-2.0
// The share of rows in which the target class has the highest score; if scores are equal, the lower class is predicted.
// Output [n, ..., classes], target [n, ...] int64: each position of a sequence counts separately.
#include <ATen/core/Tensor.h>

#include "engine/meters/labels.h"
#include "engine/meters/mean.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

void measure_accuracy(const Batch& batch, const Step::Result& result, Mean& mean) {
  const auto [predicted, target] = predicted_classes_of(batch, result);
  mean.add_later(predicted.eq(target).sum().to(at::kDouble), 1, static_cast<double>(target.numel()));
}

const bool accuracy_registered = Meters::global().add<NoFields>(
    "accuracy", "share of samples or tokens whose class has the highest score",
    [](const NoFields&) { return std::make_unique<MeanMeter>("accuracy", measure_accuracy); });

}  // namespace
}  // namespace phalanx
