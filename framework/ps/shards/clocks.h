// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx::ps {

/// The clocks that the clients of a table have reached, as known to a server.
class Clocks {
 public:
  explicit Clocks(std::int64_t clients) : clocks_(clients, 0) {}

  /// Records that client `client` has finished `clock`. Clients that do not count are ignored.
  void tick(int client, std::int64_t clock) {
    if (counts(client)) clocks_[client] = std::max(clocks_[client], clock + 1);
  }

  /// Records that the client has left, so that no one waits for it.
  void leave(int client) {
    if (counts(client)) clocks_[client] = kLeft;
  }

  /// Counts the client again if it had left, from the clock that it reports. If the server knows only an earlier clock,
  /// because it resumed from an older checkpoint, the reported clock replaces it. Returns true if the client's clock
  /// has advanced, so that waiting clients may be able to continue.
  bool join(int client, std::int64_t clock) {
    if (!counts(client)) return false;
    const auto before = clocks_[client];
    clocks_[client] = before == kLeft ? clock : std::max(before, clock);
    return clocks_[client] > before;
  }

  /// Returns the lowest clock, or kLeft if all clients have left.
  std::int64_t slowest() const { return *std::ranges::min_element(clocks_); }

  const std::vector<std::int64_t>& all() const { return clocks_; }

  /// Restores the clocks that all() returned, which must be of the same number of clients.
  void resume(const std::vector<std::int64_t>& clocks) { clocks_ = clocks; }

  static constexpr std::int64_t kLeft = std::numeric_limits<std::int64_t>::max();

 private:
  bool counts(int client) const { return client >= 0 && client < static_cast<std::int64_t>(clocks_.size()); }

  std::vector<std::int64_t> clocks_;
};

}  // namespace phalanx::ps
