// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/tuning/best_rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

namespace phalanx {
namespace {

constexpr double kMinSpeedup = 1.05;

using Times = std::map<std::string, double>;          // us, by algorithm
using BySize = std::map<std::int64_t, Times>;         // by bytes
using Winners = std::map<std::int64_t, std::string>;  // algorithm, by bytes

// The operations that share rules: op, ranks, scope and device.
using Kind = std::tuple<std::string, std::int64_t, std::string, std::string>;

std::string winner(const Times& times, const std::string& previous) {
  const auto best = std::ranges::min_element(times, {}, &Times::value_type::second);
  for (const auto& favourite : {previous, std::string(kNative)}) {
    const auto found = times.find(favourite);
    if (found != times.end() && found->second <= best->second * kMinSpeedup) return favourite;
  }
  return best->first;
}

Winners winners(const BySize& sizes) {
  Winners all;
  std::string previous = kNative;
  for (const auto& [bytes, times] : sizes) all[bytes] = previous = winner(times, previous);
  return all;
}

std::int64_t halfway(std::int64_t less, std::int64_t more) {
  return std::llround(std::sqrt(static_cast<double>(less) * static_cast<double>(more)));
}

void add_rules(const Kind& kind, const Winners& winners, std::vector<SelectionRule>& rules) {
  const auto& [op, ranks, scope, device] = kind;
  for (auto here = winners.begin(); here != winners.end(); ++here) {
    const auto next = std::next(here);
    const bool last = next == winners.end();
    if (!last && next->second == here->second) continue;
    if (last && here->second == kNative) continue;
    rules.push_back({.op = op,
                     .up_to = last ? "" : std::to_string(halfway(here->first, next->first)),
                     .ranks = ranks,
                     .scope = scope,
                     .device = device,
                     .algorithm = here->second});
  }
}

}  // namespace

std::vector<SelectionRule> best_rules(const std::vector<Measured>& rows) {
  std::vector<Kind> kinds;  // in the order of the rows
  std::map<Kind, BySize> by_kind;
  for (const auto& row : rows) {
    const Kind kind{row.op, row.ranks, row.scope, row.device};
    if (!by_kind.contains(kind)) kinds.push_back(kind);
    by_kind[kind][row.bytes][row.algorithm] = row.p50_us;
  }
  std::vector<SelectionRule> rules;
  for (const auto& kind : kinds) add_rules(kind, winners(by_kind[kind]), rules);
  return rules;
}

}  // namespace phalanx
