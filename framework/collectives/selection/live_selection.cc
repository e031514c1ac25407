// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/live_selection.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "framework/collectives/selection/selectable_ops.h"

namespace phalanx {

LiveSelection::LiveSelection(SelectionTable table, Tuning tuning, std::string host)
    : needs_ranks_(tuning == Tuning::kOn || table.depends_on_scope()),
      tuning_(tuning),
      host_(std::move(host)),
      table_(std::move(table)) {}

SelectionTable LiveSelection::table() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

void LiveSelection::replace(SelectionTable table) {
  if (tuning_ == Tuning::kOff) throw std::logic_error("LiveSelection: the table of this selection is fixed");
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
  version_.fetch_add(1, std::memory_order_release);
}

// Clears records instead of removing them, because communicators refer to them.
void LiveSelection::record(bool on) {
  const std::lock_guard lock(mutex_);
  for (auto& [ranks, sizes] : sizes_) sizes->clear();
  recording_ = on;
}

OperationSizes& LiveSelection::sizes_of(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  auto& sizes = sizes_[ranks];
  if (!sizes) sizes = std::make_unique<OperationSizes>();
  return *sizes;
}

std::vector<LiveSelection::Used> LiveSelection::used() const {
  const std::lock_guard lock(mutex_);
  std::vector<Used> all;
  for (const auto& [ranks, sizes] : sizes_) {
    for (const Op op : selectable_ops()) {
      for (int size_class = 0; size_class < OperationSizes::kClasses; ++size_class) {
        if (sizes->has(op, size_class)) all.push_back({ranks, op, size_class});
      }
    }
  }
  return all;
}

Scope LiveSelection::scope_of(const std::vector<int>& ranks) const {
  const auto elsewhere = [&](int rank) { return hosts_.at(rank) != hosts_.at(ranks.front()); };
  return std::ranges::any_of(ranks, elsewhere) ? Scope::kHosts : Scope::kHost;
}

}  // namespace phalanx
