// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace phalanx {

/// Remembers the proofs of Digest authentication with SHA-256 that clients have sent, for as long as their nonces are
/// good. libmicrohttpd 0.9.75 forgets which nonces were used when it challenges other clients, so whoever overhears a
/// request could otherwise send it again. Not thread-safe.
class UsedProofs {
 public:
  /// A proof is forgotten after `memory`. `opaque` is the text that the server adds to all challenges, and that clients
  /// repeat; it is in lower case.
  UsedProofs(std::chrono::seconds memory, std::string opaque) : memory_(memory), opaque_(std::move(opaque)) {}

  /// Returns true, and remembers them, if no proof in the value of a header Authorization was sent before. What else it
  /// has, and in which order, does not matter.
  bool are_new(std::string_view authorization);

 private:
  using Clock = std::chrono::steady_clock;

  const std::chrono::seconds memory_;
  const std::string opaque_;
  std::unordered_set<std::string> used_{};
  std::deque<std::pair<std::string, Clock::time_point>> times_{};  // oldest first
};

}  // namespace phalanx
