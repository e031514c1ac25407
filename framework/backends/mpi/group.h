// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "framework/backends/mpi/inbox.h"
#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/error.h"
#include "framework/comm/call.h"
#include "framework/comm/store.h"

namespace phalanx::mpi {

/// One rank's view of an MPI communicator: its place in it, and how it waits and fails.
///
/// MPI moves data only while somebody waits. After a CommError that is no mismatch the group is broken: every other
/// operation, launched before or after, ends with that error, since it is the cause. Thread-safe.
class Group {
 public:
  struct Options {
    std::string name;
    Seconds timeout{600};
    int local_ranks = 1;                   // on this host; decides how long a wait spins, with
    int local_cores = 0;                   // that they may use together; 0: as many as this thread
    std::int64_t most_elements = INT_MAX;  // of one MPI call; longer operations are done in another way
  };

  /// Owns `comm`. Frees it unless something failed (here, or runtime.h's healthy()): then the end of the process does.
  /// MPI_Comm_free is collective in name: in Open MPI it is local, so ranks may end at different times, in any order.
  /// `inbox` is that of all communicators of a world.
  Group(MPI_Comm comm, Options options, std::shared_ptr<Inbox> inbox);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Options& options() const { return options_; }
  MPI_Comm comm() const { return comm_; }
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }

  /// Counts launches, from 1, as FlightRecorder does.
  std::uint64_t next_sequence() { return sequence_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// "all_reduce #12 of world, rank 0 of 2"
  std::string where(Op op, std::uint64_t sequence) const;

  /// Returns when ready() holds, which asks MPI; messages for this rank are received meanwhile. Throws CommError:
  /// kTimeout after `timeout`, and what broke the group when it breaks. where() and awaited() are for its message: what
  /// waits, and for whom.
  template <class Ready, class Where, class Awaited>
  void wait(const Ready& ready, Seconds timeout, const Where& where, const Awaited& awaited) const {
    const auto progress = [&] {
      inbox_->progress();
      return ready();
    };
    waiter_.wait(progress, [&](Seconds waited) {
      throw_if_broken();
      if (waited >= timeout) throw late(where(), waited, awaited());
    });
  }

  bool broken() const { return broken_.load(std::memory_order_acquire); }

  /// Throws the error that broke the group, if one has.
  void throw_if_broken() const {
    if (broken()) throw CommError(*failure_);
  }

  /// Breaks it; of several errors the first one counts.
  void fail(const CommError& error);

 private:
  static CommError late(const std::string& where, Seconds waited, const std::string& awaited);

  MPI_Comm comm_;
  Options options_;
  std::shared_ptr<Inbox> inbox_;
  int rank_ = 0;
  int size_ = 1;
  shared_memory::Waiter waiter_;
  std::atomic<std::uint64_t> sequence_{0};
  std::mutex failing_;                // guards failure_ until broken_
  std::optional<CommError> failure_;  // set once
  std::atomic<bool> broken_{false};
};

/// What MPI may still read or write after an operation was given up, for as long as the process lives.
void keep_for_good(std::shared_ptr<void> memory);

}  // namespace phalanx::mpi
