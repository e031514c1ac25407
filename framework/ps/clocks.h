// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx::ps {

/// How far each client of a table has come, as a server knows it.
class Clocks {
 public:
  explicit Clocks(std::int64_t clients) : clocks_(clients, 0) {}

  /// Client `client` has finished `clock`. Clients that do not count are ignored.
  void tick(int client, std::int64_t clock) {
    if (counts(client)) clocks_[client] = std::max(clocks_[client], clock + 1);
  }

  /// Nobody waits for this client any more.
  void leave(int client) {
    if (counts(client)) clocks_[client] = kLeft;
  }

  /// It counts again, if it had left, from the clock that it says it has come to; and where the server had forgotten
  /// the last ones, since it resumed from an older checkpoint, from that one too.
  /// Whether that lets anybody go on.
  bool join(int client, std::int64_t clock) {
    if (!counts(client)) return false;
    const auto before = clocks_[client];
    clocks_[client] = before == kLeft ? clock : std::max(before, clock);
    return clocks_[client] > before;
  }

  /// kLeft: all have left.
  std::int64_t slowest() const { return *std::ranges::min_element(clocks_); }

  const std::vector<std::int64_t>& all() const { return clocks_; }

  /// Those of all(), of as many clients.
  void resume(const std::vector<std::int64_t>& clocks) { clocks_ = clocks; }

  static constexpr std::int64_t kLeft = std::numeric_limits<std::int64_t>::max();

 private:
  bool counts(int client) const { return client >= 0 && client < static_cast<std::int64_t>(clocks_.size()); }

  std::vector<std::int64_t> clocks_;
};

}  // namespace phalanx::ps
