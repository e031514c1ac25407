// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "framework/ps/server_list.h"

namespace phalanx::ps {

/// The servers that a run uses, which can be replaced by others during the run. An empty list means that the ranks of
/// each strategy start servers themselves; it only says how their clients connect. Each rank has its own. Not
/// thread-safe.
class CurrentServers {
 public:
  explicit CurrentServers(ServerList list) : list_(std::move(list)) {}

  const ServerList& list() const { return list_; }

  /// Registers `move`, which moves the data that its owner keeps on the former servers to the servers in list(), which
  /// is already the new one when `move` is called. The former servers still answer then. `move` is collective among the
  /// ranks that share the data, and must not be called after its owner has been destroyed. Owners must be added in the
  /// same order on all ranks.
  void on_change(std::function<void()> move) { moves_.push_back(std::move(move)); }

  /// Replaces the list and calls all moves. Collective: must be called between two steps with the same list on all
  /// ranks. Throws whatever the moves throw.
  void change(ServerList list) {
    list_ = std::move(list);
    for (const auto& move : moves_) move();
  }

 private:
  ServerList list_;
  std::vector<std::function<void()>> moves_;
};

}  // namespace phalanx::ps
