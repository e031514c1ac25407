// SPDX-License-Identifier: Apache-2.0
// Mean squared error over all elements, or its root. Output and target must have as many elements per sample.
#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>

#include <cmath>

#include "engine/meters/mean.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct MseConfig {
  bool root = false;

  template <class V>
  void visit(V& v) {
    v("root", root, "take the square root (RMSE)");
  }
};

void measure_square_error(const Batch& batch, const Step::Result& result, Mean& mean) {
  if (result.outputs.at(0).numel() != batch.targets.at(0).numel()) {
    throw ConfigError(c10::str("mse needs as many outputs as targets, but the model's output is ",
                               result.outputs.at(0).sizes(), " and the target ", batch.targets.at(0).sizes()));
  }
  const at::Tensor output = result.outputs.at(0).narrow(0, 0, batch.valid).to(at::kDouble);
  const at::Tensor target = batch.targets.at(0).narrow(0, 0, batch.valid).to(at::kDouble);
  mean.add(output.flatten().sub(target.flatten()).square());
}

const bool mse_registered = Meters::global().add<MseConfig>(
    "mse", "mean squared error over all outputs", [](const MseConfig& config) -> std::unique_ptr<Meter> {
      if (!config.root) return std::make_unique<MeanMeter>("mse", measure_square_error);
      return std::make_unique<MeanMeter>("rmse", measure_square_error, [](double mean) { return std::sqrt(mean); });
    });

}  // namespace
}  // namespace phalanx
