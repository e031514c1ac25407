// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/meters/meter.h"
#include "framework/base/config/config.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {

/// Returns the meter that a config file with this YAML would create.
inline std::unique_ptr<Meter> make_meter(const std::string& yaml) {
  return config::load_as<Meters::Choice>("meter", yaml, "test.yaml").make();
}

/// Returns a batch without padding.
inline Batch batch_of(const at::Tensor& target) {
  return {.inputs = {target}, .targets = {target}, .valid = target.size(0), .global_rows = target.size(0)};
}

/// Returns the metrics of one batch, as a meter on one rank measures them.
inline Metrics metrics_of(const std::string& yaml, const at::Tensor& output, const at::Tensor& target) {
  const auto meter = make_meter(yaml);
  meter->add(batch_of(target),
             {.outputs = {output}, .loss = at::full({}, 0.0), .weight = static_cast<double>(target.size(0))});
  Metrics metrics;
  run_ranks("inproc", 1, [&](const CommunicatorPtr& group) { metrics = meter->take(*group); });
  return metrics;
}

/// Returns the value of the first metric.
inline double metric_of(const std::string& yaml, const at::Tensor& output, const at::Tensor& target) {
  return metrics_of(yaml, output, target).at(0).second;
}

inline at::Tensor numbers(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }
inline at::Tensor integers(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace phalanx::testing
