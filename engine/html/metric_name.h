// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// The parts of a metric's name: "recall[3]" is an element of a list called recall, "confusion[3][5]" an element of a
/// matrix, and "loss" is a scalar.
struct MetricName {
  std::string family;               // name without the numbers
  std::vector<std::int64_t> index;  // none, one, or two
};

MetricName parse_metric_name(const std::string& name);

/// Returns the names without an index, in their order.
std::vector<std::string> scalar_metrics(const std::vector<std::string>& metrics);

}  // namespace phalanx
