// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace phalanx::mpi {

/// The receives of one rank whose messages have not come yet, over all communicators of a world.
///
/// MPI is given a receive only when its message is there and its length known. It would take the receive at once, but
/// Open MPI 5 writes past the end of the memory when a longer message comes. And so whoever waits for anything must
/// call progress(): otherwise senders of long messages would wait until this rank waits for those.
///
/// Thread-safe.
class Inbox {
 public:
  struct Source {
    MPI_Comm comm;
    int peer;
    int tag;
    auto operator<=>(const Source&) const = default;
  };

  /// A receive that waits for its message.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    /// Takes the next message of its source if there is one, and says whether it is done with waiting. Called with the
    /// inbox locked.
    virtual bool take() noexcept = 0;
  };

  /// Receivers of one source take its messages in the order in which they were added.
  void add(const Source& source, Receiver& receiver);

  /// From now on `receiver` is not called; nothing to do when it has taken its message.
  void remove(const Source& source, const Receiver& receiver);

  /// Lets those take their messages that can. Nothing to do while another thread does it.
  void progress() {
    if (waiting_.load(std::memory_order_acquire) > 0) take_all();
  }

 private:
  void take_all();

  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // in all of receivers_
  std::map<Source, std::deque<Receiver*>> receivers_;
};

}  // namespace phalanx::mpi
