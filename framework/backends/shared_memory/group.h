// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/control_block.h"
#include "framework/backends/shared_memory/fabric.h"
#include "framework/backends/shared_memory/scratch_writer.h"
#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/error.h"
#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {

/// One rank's view of a group that shares memory. It synchronizes with its peers and notices when they are gone or
/// disagree.
///
/// Not thread-safe, except where stated: it is used by the thread that runs the rank's OperationQueue. After a
/// CommError other than kMismatch the group is broken: this rank has left it, and every later call throws that error
/// again.
class Group {
 public:
  struct Options {
    std::string name;
    int rank = 0;
    int size = 1;
    Seconds timeout{600};  // of an operation, from the time when it begins to wait
    int local_ranks = 0;   // ranks that share the cores; 0: as many as the group has
    int local_cores = 0;   // cores that they may use together; 0: as many as this thread may use
  };

  /// `control` is the memory of a ControlBlock. `idle` is called repeatedly while this rank waits, and must not throw.
  Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric, std::function<void()> idle);
  ~Group();  // calls leave()
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  Fabric& fabric() { return *fabric_; }
  const ControlBlock& block() const { return block_; }

  /// Returns true if an error has broken the group. Any thread may call it.
  bool broken() const { return broken_.load(std::memory_order_acquire); }

  /// Throws the error that broke the group, if any. Any thread may call it.
  void throw_if_broken() const {
    if (broken()) throw_failure();
  }

  /// The first barrier of an operation. Posts `mine` and blocks, up to `timeout` if given, until all ranks have posted.
  /// Throws kMismatch on all ranks unless the calls agree.
  void exchange_posts(const Post& mine, std::optional<Seconds> timeout = {});

  /// Does the same, and also sends `payload`, at most kPayloadBytes, to the other ranks. `bytes` is the size of the
  /// payload that this rank receives from each other rank, or only from `sender`.
  void exchange_posts(const Post& mine, std::span<const std::byte> payload, std::size_t bytes, int sender);

  /// Returns the payload that another rank sent in the last barrier. own_payload() is a buffer for this rank's payload
  /// in the next barrier.
  const std::byte* payload_of(int rank) const { return payloads_.data() + kPayloadBytes * rank; }
  std::byte* own_payload() { return payloads_.data() + kPayloadBytes * rank(); }

  /// Returns a rank's post for the current operation; valid after exchange_posts().
  const Post& post_of(int rank) const { return block_.member(rank).posts[parity()].post; }

  /// Performs a further barrier of the current operation.
  void barrier();

  /// Returns a rank's scratch half for the current operation, which its owner must fill before exchange_posts(). Before
  /// a rank has called exchange_posts(), its next operation uses next_scratch().
  std::byte* scratch(int rank) { return block_.member(rank).scratch[parity()]; }
  std::byte* next_scratch() { return self().scratch[(sequence() + 1) % 2]; }

  /// Returns one of both halves, for operations that move more data than fits into one half, with further barriers in
  /// between.
  std::byte* scratch(int rank, int half) { return block_.member(rank).scratch[half]; }

  ScratchWriter& scratch_writer() { return scratch_writer_; }

  /// Return the channels to and from a peer. Only the sending or receiving thread may use each.
  Channel& channel_to(int peer) const { return block_.channel(options_.rank, peer); }
  Channel& channel_from(int peer) const { return block_.channel(peer, options_.rank); }

  /// Returns "left the group" or "ended" if a peer no longer takes part, otherwise null. Any thread may call it.
  const char* loss_of(int peer) const;

  /// Leaves the group: peers that wait for this rank get kPeerLost.
  void leave();

  /// Leaves the group with an error. Every later call throws the first such error, since it is the cause. Any thread
  /// may call it.
  void fail(const CommError& error);

  /// Does the same for an error outside of any call: the posts of this rank remain valid. Any thread may call it.
  void fail_between_calls(const CommError& error);

 private:
  std::uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }
  int parity() const { return static_cast<int>(sequence() % 2); }
  Member& self() const { return block_.member(options_.rank); }
  void compare_calls() const;
  void fail_in(std::uint64_t sequence, const CommError& error);
  [[noreturn]] void throw_failure() const;

  void begin(std::optional<Seconds> timeout);
  void post(const Post& mine);
  void agree();
  bool posted(int peer, std::uint64_t sequence) const {
    return block_.member(peer).posts[sequence % 2].sequence.load(std::memory_order_acquire) == sequence;
  }
  void refuse_failed();
  template <class Arrived>
  void await_all(const Arrived& arrived);
  void give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited);
  [[noreturn]] void fail_and_throw(const CommError& error);
  [[noreturn]] void give_up(int rank, const char* what_it_did, double seconds);
  std::string where() const;  // "all_reduce #12 of world, rank 0 of 2"

  Options options_;
  std::shared_ptr<void> control_;
  std::unique_ptr<Fabric> fabric_;
  std::function<void()> idle_;
  ControlBlock block_;
  std::vector<std::byte> payloads_;
  ScratchWriter scratch_writer_;
  Waiter waiter_;
  std::atomic<std::uint64_t> sequence_{0};  // written by the single user thread
  std::uint64_t stage_ = 0;
  Op op_ = Op::kNone;
  Seconds timeout_{0};                                      // timeout of the current operation
  std::optional<Waiter::Clock::time_point> waiting_since_;  // start of the wait in the current operation
  mutable std::mutex failing_;                              // guards failure_ until broken_
  std::optional<CommError> failure_;
  std::atomic<bool> broken_{false};
};

}  // namespace phalanx::shared_memory
