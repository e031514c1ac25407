// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/resolved_table.h"

#include <algorithm>
#include <utility>

#include "framework/base/text.h"

namespace phalanx {
namespace {

int position_of(const std::string& backend, const std::vector<std::string>& backends) {
  if (backend.empty()) return -1;
  const auto found = std::ranges::find(backends, backend);
  if (found != backends.end()) return static_cast<int>(found - backends.begin());
  throw ConfigError("selection: a rule names backend " + backend + ", which does not connect this group; connected: " +
                    (backends.empty() ? kOwn : std::string(kOwn) + ", " + join(backends, ", ")));
}

}  // namespace

ResolvedTable::ResolvedTable(const SelectionTable& table, Group group, const std::vector<std::string>& backends) {
  for (const auto& rule : table.parsed()) (void)position_of(rule.backend, backends);
  for (const bool on_cpu : {true, false}) {
    for (const Op op : selectable_ops()) {
      Rules rules;
      std::vector<std::int64_t> bounds;
      for (const auto& rule : table.parsed()) {
        const bool for_device = !rule.device || (*rule.device == c10::kCPU) == on_cpu;
        if (rule.op != op || !for_device || !rule.matches_group(group.ranks, group.scope)) continue;
        rules.emplace_back(rule.up_to, Candidate{rule.algorithm, position_of(rule.backend, backends)});
        bounds.push_back(rule.up_to);
      }
      std::ranges::sort(bounds);
      const auto repeated = std::ranges::unique(bounds);
      bounds.erase(repeated.begin(), repeated.end());
      auto& ranges = ranges_[on_cpu ? 0 : 1][static_cast<std::size_t>(op)];
      for (const auto bound : bounds) ranges.push_back(add_range(bound, rules));
    }
  }
}

// Skips candidates that would never be tried: those after native, which always suits, and repetitions of an earlier
// way.
ResolvedTable::Range ResolvedTable::add_range(std::int64_t up_to, const Rules& rules) {
  const std::size_t begin = candidates_.size();
  for (const auto& [limit, candidate] : rules) {
    if (limit < up_to || std::find(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end(),
                                   candidate) != candidates_.end()) {
      continue;
    }
    candidates_.push_back(candidate);
    if (candidate.algorithm == nullptr) break;
  }
  return {up_to, begin, candidates_.size()};
}

std::int64_t selection_bytes(const Call& call) {
  const bool uneven_exchange = call.op == Op::kAllToAll && call.detail != 0;  // its elements differ between ranks
  return uneven_exchange ? kAnySize : call.elements * static_cast<std::int64_t>(c10::elementSize(call.dtype));
}

}  // namespace phalanx
