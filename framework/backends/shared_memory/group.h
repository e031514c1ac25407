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
#include "framework/comm/store.h"

namespace phalanx::shared_memory {

/// One rank's view of a group that shares memory: meets its peers and notices when they are gone or disagree.
///
/// Used by one thread at a time (the one that runs the rank's OperationQueue), but for what says otherwise. After a
/// CommError other than kMismatch the group is broken: this rank has left it, and every later call throws that error
/// again.
class Group {
 public:
  struct Options {
    std::string name;
    int rank = 0;
    int size = 1;
    Seconds timeout{600};  // of an operation, from where it begins to wait
    int ranks_here = 0;    // that share the cores; 0: as many as the group has
    int cores_here = 0;    // that they may use together; 0: as many as this thread
  };

  /// `control` is the memory of a ControlBlock. `idle` is called in turn while this rank waits, and must not throw.
  Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric, std::function<void()> idle);
  ~Group();  // leaves
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const std::string& name() const { return options_.name; }
  const Options& options() const { return options_; }
  Fabric& fabric() { return *fabric_; }
  const ControlBlock& block() const { return block_; }

  /// Whether an error has broken the group. Any thread.
  bool broken() const { return broken_.load(std::memory_order_acquire); }

  /// Throws the error that broke the group, if one has. Any thread.
  void throw_if_broken() const {
    if (broken()) throw_failure();
  }

  /// First meeting of an operation: posts `mine` and waits, up to `timeout` if that is given, until all ranks have
  /// posted theirs. Throws kMismatch, on all ranks alike, unless the calls agree.
  void meet(const Post& mine, std::optional<Seconds> timeout = {});

  /// The same, and brings the others `mine_too`, of at most kPayloadBytes. `bytes`: what this rank gets of each of
  /// the others, or of `sender` alone.
  void meet(const Post& mine, std::span<const std::byte> mine_too, std::size_t bytes, int sender);

  /// What another rank has brought along to the last meeting, and room for what this one brings to the next.
  const std::byte* payload_of(int rank) const { return payloads_.data() + kPayloadBytes * rank; }
  std::byte* own_payload() { return payloads_.data() + kPayloadBytes * rank(); }

  /// A rank's post for the current operation; after meet().
  const Post& post_of(int rank) const { return block_.member(rank).posts[parity()].post; }

  /// A further meeting of the current operation.
  void meet_again();

  /// A rank's scratch half for the current operation; to be filled by its owner before meet(). Until it has called
  /// meet(), a rank is at the operation that comes next.
  std::byte* scratch(int rank) { return block_.member(rank).scratch[parity()]; }
  std::byte* next_scratch() { return self().scratch[(sequence() + 1) % 2]; }

  /// Both halves, for operations that move more than one half holds and meet again in between.
  std::byte* scratch(int rank, int half) { return block_.member(rank).scratch[half]; }

  ScratchWriter& scratch_writer() { return scratch_writer_; }

  /// The way of messages to or from a peer. The sender's and the receiver's thread each.
  Channel& channel_to(int peer) const { return block_.channel(options_.rank, peer); }
  Channel& channel_from(int peer) const { return block_.channel(peer, options_.rank); }

  /// "left the group" or "ended" where a peer takes no part any more, else null. Any thread.
  const char* loss_of(int peer) const;

  /// Takes no part any more: peers that wait for this rank get kPeerLost.
  void leave();

  /// Leaves; every later call throws the first error that was given here, since it is the cause. Any thread.
  void fail(const CommError& error);

  /// The same for what went wrong outside of any call: what this rank has posted stands. Any thread.
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
  [[noreturn]] void throw_for_good(const CommError& error);
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
  std::atomic<std::uint64_t> sequence_{0};  // written by the user's one thread
  std::uint64_t stage_ = 0;
  Op op_ = Op::kNone;
  Seconds timeout_{0};                                      // of the current operation
  std::optional<Waiter::Clock::time_point> waiting_since_;  // in the current operation
  mutable std::mutex failing_;                              // guards failure_ until broken_
  std::optional<CommError> failure_;
  std::atomic<bool> broken_{false};
};

}  // namespace phalanx::shared_memory
