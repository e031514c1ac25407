// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/collectives/selection/operation_sizes.h"
#include "framework/collectives/selection/selection_table.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {

/// The selection of algorithms in a world and in every group that is split from it. One object per rank, which the
/// rank's SelectingCommunicators share. The table can be replaced between two operations, and the sizes of operations
/// can be recorded. Thread-safe.
class LiveSelection {
 public:
  enum class Tuning { kOff, kOn };

  /// `host` is a key of this rank's host. With Tuning::kOn, groups know their ranks, so that sizes can be recorded and
  /// later tables may depend on the scope. With kOff they do only if `table` depends on it.
  explicit LiveSelection(SelectionTable table, Tuning tuning = Tuning::kOff, std::string host = host_key());

  const std::string& host() const { return host_; }

  bool needs_ranks() const { return needs_ranks_; }

  SelectionTable table() const;

  /// Replaces the table for all operations that are launched from now on. All ranks must call it between the same two
  /// operations, with the same table. Throws std::logic_error with Tuning::kOff.
  void replace(SelectionTable table);

  /// Returns a number that changes when the table does.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  /// Starts or stops to record operations, and forgets earlier records.
  void record(bool on);
  bool recording() const { return recording_.load(std::memory_order_relaxed); }

  /// Returns the record of the group of these ranks of the world. It lives as long as this object.
  OperationSizes& sizes_of(const std::vector<int>& ranks);

  /// Returns the ranks of each group with the classes of sizes of each of its operations.
  struct Used {
    std::vector<int> ranks{};
    Op op = Op::kNone;
    int size_class = 0;

    auto operator<=>(const Used&) const = default;
  };
  std::vector<Used> used() const;

  /// The host of each rank of the world, set by the world's SelectingCommunicator if needs_ranks().
  void set_hosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  Scope scope_of(const std::vector<int>& ranks) const;

 private:
  const bool needs_ranks_;
  const Tuning tuning_;
  const std::string host_;
  std::vector<std::string> hosts_;
  std::atomic<std::uint64_t> version_ = 0;
  std::atomic<bool> recording_ = false;
  mutable std::mutex mutex_;
  SelectionTable table_;
  std::map<std::vector<int>, std::unique_ptr<OperationSizes>> sizes_;
};

}  // namespace phalanx
