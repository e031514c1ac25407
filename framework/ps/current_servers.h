// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "framework/ps/server_list.h"

namespace phalanx::ps {

/// The servers that a run uses, in whose place others may come while it goes on. Of one rank; not thread-safe.
class CurrentServers {
 public:
  explicit CurrentServers(ServerList list) : list_(std::move(list)) {}

  const ServerList& list() const { return list_; }

  /// `move` takes what its owner keeps on the former servers, which still answer, to those that list() has by then. It
  /// is collective among those who share what is kept, must not be called after its owner's end, and owners are added
  /// in the same order on all ranks.
  void on_change(std::function<void()> move) { moves_.push_back(std::move(move)); }

  /// Between two steps, with the same list on all ranks. Collective. Throws what the moves throw.
  void change(ServerList list) {
    list_ = std::move(list);
    for (const auto& move : moves_) move();
  }

 private:
  ServerList list_;
  std::vector<std::function<void()>> moves_;
};

}  // namespace phalanx::ps
