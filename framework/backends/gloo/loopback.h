// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <vector>

namespace phalanx::gloo {

/// Messages of a rank to itself: Gloo connects a rank to others only. Thread-safe.
class Loopback {
 public:
  using Letter = std::vector<std::byte>;

  void send(int tag, Letter letter);

  /// The next letter of this tag that no other call got or will get.
  std::future<Letter> recv(int tag);

 private:
  struct Box {  // one of them is empty
    std::deque<Letter> letters;
    std::deque<std::promise<Letter>> readers;
  };

  std::mutex mutex_;
  std::map<int, Box> boxes_;
};

}  // namespace phalanx::gloo
