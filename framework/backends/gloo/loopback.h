// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <vector>

namespace phalanx::gloo {

/// Messages from a rank to itself, since Gloo connects a rank only to other ranks. Thread-safe.
class Loopback {
 public:
  using Letter = std::vector<std::byte>;

  void send(int tag, Letter letter);

  /// Returns the next letter with this tag that no other call receives.
  std::future<Letter> recv(int tag);

 private:
  struct Box {  // at least one of the two is empty
    std::deque<Letter> letters;
    std::deque<std::promise<Letter>> readers;
  };

  std::mutex mutex_;
  std::map<int, Box> boxes_;
};

}  // namespace phalanx::gloo
