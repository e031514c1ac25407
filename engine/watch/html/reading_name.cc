// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/html/reading_name.h"

#include <algorithm>
#include <iterator>
#include <regex>

namespace phalanx {

MetricName parse_metric_name(const std::string& name) {
  static const std::regex pattern(R"(([^\[\]]+)\[(\d{1,9})\](?:\[(\d{1,9})\])?)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) return {name, {}};
  MetricName parsed{match[1], {std::stoll(match[2])}};
  if (match[3].matched) parsed.index.push_back(std::stoll(match[3]));
  return parsed;
}

std::vector<std::string> scalar_metrics(const std::vector<std::string>& metrics) {
  std::vector<std::string> singles;
  std::ranges::copy_if(metrics, std::back_inserter(singles),
                       [](const std::string& name) { return parse_metric_name(name).index.empty(); });
  return singles;
}

}  // namespace phalanx
