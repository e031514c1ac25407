// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/inbox.h"
#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/error.h"
#include "framework/comm/operations/call.h"
#include "framework/comm/store/store.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// One rank's view of an MPI communicator. It implements waiting and error handling.
///
/// MPI moves data only while a thread waits. After a CommError other than a mismatch the group is broken: all other
/// operations, launched before or after it, fail with that error, since it is the cause.
///
/// With ulfm(), a group is also told of ranks that have ended, while this rank waits in it. Then other groups may go
/// on.
///
/// Thread-safe.
class Group {
 public:
  struct Options {
    std::string name;
    Seconds timeout{600};
    int local_ranks = 1;                  // on this host; with local_cores it decides how long a wait spins
    int local_cores = 0;                  // that these ranks may use together; 0: as many as this thread may use
    std::int64_t max_elements = INT_MAX;  // maximum of one MPI call; longer operations are split or use messages
  };

  /// Owns `comm` and frees it, unless an error occurred here or in runtime.h (see healthy()); then it is freed by the
  /// end of the process. MPI_Comm_free is collective by definition, but local in Open MPI, so ranks may end at
  /// different times and in any order. `inbox` belongs to all communicators of a world.
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

  /// Returns a text such as "all_reduce #12 of world, rank 0 of 2".
  std::string where(Op op, std::uint64_t sequence) const;

  /// Throws the CommError of error.h unless `code` is MPI_SUCCESS. If ranks have ended, the message names them.
  void check(int code, const std::string& where) const;

  /// Throws CommError::kPeerLost if a rank is known to have ended: `peer`, or any if it is kAny. What it had sent
  /// before has arrived by then.
  void throw_if_ended(int peer, const std::string& where) const;
  static constexpr int kAny = -1;

  /// Returns true if throw_if_ended() may throw. Fast.
  bool any_ended() const { return any_ended_.load(std::memory_order_acquire); }

  /// Creates the group of a communicator that was made from this one, with the same options but another name.
  std::shared_ptr<Group> derive(MPI_Comm comm, std::string name);

  /// Breaks this group with `error`, and all groups that were derived from it, and revokes them: operations of the
  /// other ranks fail with kPeerLost. Also revokes those groups of its world that an exception has destroyed on this
  /// rank, where peers may still wait for it. Returns false if that was done before. Throws CommError if MPI could not
  /// revoke one of them, after it has tried all. Needs ulfm().
  bool revoke(const CommError& error);

  /// Blocks until ready() returns true; ready() polls MPI. Messages for this rank are received while it waits. Throws
  /// CommError: kTimeout after `timeout`, or the error that breaks the group. The message uses where(), the waiting
  /// operation, and awaited(), the ranks that it waits for.
  template <class Ready, class Where, class Awaited>
  void wait(const Ready& ready, Seconds timeout, const Where& where, const Awaited& awaited) const {
    const auto progress = [&] {
      inbox_->progress();
      return ready();
    };
    Seconds looked{0};
    waiter_.wait(progress, [&](Seconds waited) {
      throw_if_broken();
      if (waited >= timeout) throw late(where(), waited, awaited());
      if (waited - looked < kLookInterval) return;
      looked = waited;
      look_for_ended();
    });
  }

  /// Does the same in a group that is broken. Returns false after `timeout`.
  template <class Ready>
  bool wait_although_broken(const Ready& ready, Seconds timeout) const {
    bool in_time = true;
    const auto progress = [&] {
      inbox_->progress();
      return !in_time || ready();
    };
    waiter_.wait(progress, [&](Seconds waited) { in_time = waited < timeout; });
    return in_time;
  }

  bool broken() const { return broken_.load(std::memory_order_acquire); }

  /// Throws the error that broke the group, if one has.
  void throw_if_broken() const {
    if (broken()) throw CommError(*failure_);
  }

  /// Breaks the group. If there are several errors, the first one counts.
  void fail(const CommError& error);

 private:
  static constexpr Seconds kLookInterval{0.005};

  static CommError late(const std::string& where, Seconds waited, const std::string& awaited);
  void look_for_ended() const;
  std::vector<MPI_Comm> take_left() const;

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

  // The communicators of groups that were destroyed without being freed; shared by all groups of a world.
  struct Left {
    std::mutex mutex;
    std::vector<MPI_Comm> comms;
  };
  std::shared_ptr<Left> left_ = std::make_shared<Left>();

  mutable std::mutex others_;  // guards the rest
  std::vector<std::weak_ptr<Group>> derived_;
  bool revoked_ = false;
  mutable std::vector<int> seen_;   // the ranks that MPI says have ended
  mutable std::vector<int> ended_;  // as of the look before; MPI has delivered their messages since
  mutable std::atomic<bool> any_ended_{false};
};

/// Keeps memory until the process ends, because MPI may still use it after an operation was abandoned.
void keep_until_exit(std::shared_ptr<void> memory);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
