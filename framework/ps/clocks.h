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

  /// It counts again, from the clock that it says it has come to.
  void join(int client, std::int64_t clock) {
    if (counts(client) && clocks_[client] == kLeft) clocks_[client] = clock;
  }

  /// kLeft: all have left.
  std::int64_t slowest() const { return *std::ranges::min_element(clocks_); }

  static constexpr std::int64_t kLeft = std::numeric_limits<std::int64_t>::max();

 private:
  bool counts(int client) const { return client >= 0 && client < static_cast<std::int64_t>(clocks_.size()); }

  std::vector<std::int64_t> clocks_;
};

}  // namespace phalanx::ps
