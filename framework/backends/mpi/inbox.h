// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "framework/backends/mpi/api.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// The pending receives of one rank, over all communicators of a world.
///
/// A receive is passed to MPI only when its message has arrived and its length is known. MPI would accept it earlier,
/// but Open MPI 5 writes past the end of the memory if a longer message arrives. Therefore every wait must call
/// progress(); otherwise the senders of long messages would block until this rank waits for those messages.
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
    /// Takes the next message from its source if there is one. Returns true if the receiver no longer waits. Called
    /// with the inbox locked.
    virtual bool take() noexcept = 0;
  };

  /// Adds a receiver. Receivers of one source take its messages in the order in which they were added.
  void add(const Source& source, Receiver& receiver);

  /// Removes a receiver, which is not called after that. Does nothing if it has already taken its message.
  void remove(const Source& source, const Receiver& receiver);

  /// Lets receivers take the messages that have arrived. Does nothing if another thread is doing it.
  void progress() {
    if (waiting_.load(std::memory_order_acquire) > 0) take_all();
  }

 private:
  void take_all();

  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // the number of receivers in receivers_
  std::map<Source, std::deque<Receiver*>> receivers_;
};

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
