// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// One value in Prometheus' text format: name{label="value",...} value.
struct PrometheusSample {
  std::string name;
  std::map<std::string, std::string> labels{};
  double value = 0;

  /// Returns the value of a label, or an empty string if it is absent.
  std::string label(const std::string& key) const;
};

/// Parses the text format, version 0.0.4. Comments are skipped. Throws DataError: "SOURCE:LINE: is not a line of
/// metrics".
std::vector<PrometheusSample> parse_prometheus_text(std::string_view text, const std::string& source);

}  // namespace phalanx
