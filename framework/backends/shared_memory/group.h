// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/backends/shared_memory/control_block.h"
#include "framework/backends/shared_memory/fabric.h"
#include "framework/backends/shared_memory/piece_writer.h"
#include "framework/backends/shared_memory/ring.h"
#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/error.h"
#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {

/// One rank's view of a group that shares memory. It synchronizes with its peers and notices when they are gone or
/// disagree.
///
/// An operation begins with post(), which tells the other ranks what this rank does. await_posts() blocks until the
/// ranks whose data this rank uses have posted the same operation. A rank that uses no data of others, such as the root
/// of a broadcast, does not call it and goes on at once. It compares the others' calls later: in the first operation
/// that waits for them, at the latest in the kLead-th one after it. take_late_mismatch() then returns the difference.
///
/// Not thread-safe, except where stated: it is used by the thread that runs the rank's OperationQueue. After a
/// CommError other than kMismatch the group is broken: this rank has left it, and every later call throws that error
/// again.
class Group {
 public:
  /// Stands for all ranks of the group where a rank is expected.
  static constexpr int kAllRanks = -1;

  struct Options {
    std::string name;
    int rank = 0;
    int size = 1;
    Seconds timeout{600};  // of an operation, from the time when it begins to wait
    int local_ranks = 0;   // ranks that share the cores; 0: as many as the group has
    int local_cores = 0;   // cores that they may use together; 0: as many as this thread may use

    /// Is called often while this rank waits, and may throw a CommError to end the wait (ConnectOptions::check). Groups
    /// that are split from this one have it, too. Null: there is none.
    std::function<void()> check{};
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

  /// Begins an operation. Blocks, up to `timeout` if given, only while another rank is kLead operations behind.
  void begin(Op op, std::optional<Seconds> timeout = {});

  /// Lets the other ranks read `mine`, which is what this rank does in the operation, and `payload`, at most
  /// kPayloadBytes. A post with a payload has no locations. Throws kPeerLost if a rank gave up in this operation or
  /// earlier, or has left without posting it.
  void post(const Post& mine, std::span<const std::byte> payload = {});

  /// Blocks until `from`, a rank or kAllRanks, has posted the current operation. Throws kMismatch unless its call is
  /// the same; all ranks that find a mismatch then wait for all posts and describe the same one.
  void await_posts(int from = kAllRanks);

  /// Returns a rank's post for the current operation. It was awaited, or is this rank's own.
  const Post& post_of(int rank) const { return posts_[rank]; }

  /// Copies `bytes` bytes of the payload of a rank whose post was awaited, beginning at byte `begin`.
  void read_payload(int rank, std::size_t begin, std::size_t bytes, std::byte* to);

  /// Returns memory of this process for a payload, kPayloadBytes for each rank.
  std::byte* payload_buffer(int rank) { return payload_buffers_.data() + kPayloadBytes * rank; }

  /// Returns this rank's ring, and its access to that of a peer.
  RingWriter& ring() { return ring_; }
  RingReader& ring_of(int peer) { return rings_[peer]; }

  /// Publishes the next piece of this rank's ring in the current operation.
  void publish_piece(int reader) { ring_.publish(sequence(), reader); }

  /// Returns true if this rank may write the next piece. Throws kMismatch if a reader turns out to have posted another
  /// call.
  bool ring_has_room();

  /// Returns true if this rank's ring has no room because a rank has not yet taken its pieces.
  bool ring_awaits(int peer) const { return ring_.is_awaited(peer) && !has_finished(peer, ring_.oldest_sequence()); }

  /// Sets the number of the first piece of this operation, if the post does not say it. Called before post().
  void set_first_piece(std::uint64_t number) { self().begins[sequence() % kPosts] = number; }

  /// Returns the number of the first piece of this operation in the ring of a rank whose post was awaited and has no
  /// payload.
  std::uint64_t first_piece_of(int rank);

  /// Blocks until ready() returns true. Throws kPeerLost if a rank for which arrived(rank) returns false is gone,
  /// kTimeout if the time of the operation is over, and kMismatch if another rank turns out to have posted another
  /// call.
  template <class Ready, class Arrived>
  void await(const Ready& ready, const Arrived& arrived);

  /// The last step of an operation in which ranks use each other's memory in place: mark_finished() says that this rank
  /// needs no memory of others any more, and await_finished() blocks until `from` has said so.
  void mark_finished();
  void await_finished(int from = kAllRanks);
  void finish() {
    mark_finished();
    await_finished();
  }

  /// Blocks until all ranks have called it in this operation as often as this rank.
  void barrier();

  /// Returns kScratchBytes of scratch memory of a rank. Between operations it belongs to that rank. An operation may
  /// let others read and write it, between a barrier before and one after that.
  std::byte* scratch(int rank) const { return block_.scratch(rank); }

  /// Returns true if ranks of this host have to share cores. The same on all ranks.
  bool shares_cores() const { return options_.local_cores > 0 && options_.local_ranks > options_.local_cores; }

  /// Returns the difference between calls of earlier operations if one was found since the last call.
  std::optional<CommError> take_late_mismatch() { return std::exchange(late_mismatch_, std::nullopt); }

  PieceWriter& piece_writer() { return piece_writer_; }

  /// Return the channels to and from a peer. Only the sending or receiving thread may use each.
  Channel& channel_to(int peer) const { return block_.channel(options_.rank, peer); }
  Channel& channel_from(int peer) const { return block_.channel(peer, options_.rank); }
  ChannelData data_to(int peer) const { return block_.channel_data(options_.rank, peer); }
  ChannelData data_from(int peer) const { return block_.channel_data(peer, options_.rank); }

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
  Member& self() const { return block_.member(options_.rank); }
  const Member::Line& line_of(int peer, std::uint64_t sequence) const {
    return block_.member(peer).posts[sequence % kPosts];
  }
  bool posted(int peer, std::uint64_t sequence) const {
    return line_of(peer, sequence).sequence.load(std::memory_order_acquire) == sequence;
  }
  bool has_finished(int peer, std::uint64_t sequence) const;
  void fail_in(std::uint64_t sequence, const CommError& error);
  [[noreturn]] void throw_failure() const;

  void keep_up();
  void compare_earlier(int peer, std::uint64_t end);
  void refuse_lost();
  void compare_with(int peer);
  void compare_those_here();
  [[noreturn]] void refuse_mismatch();
  template <class Arrived>
  void await_all(const Arrived& arrived);
  void give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited);
  std::uint64_t begin_in_ring(int rank) const;
  std::int64_t progress_of(int peer) const;
  [[noreturn]] void fail_and_throw(const CommError& error);
  [[noreturn]] void give_up(int rank, const char* what_it_did, double seconds);
  std::string where(Op op, std::uint64_t sequence) const;  // "all_reduce #12 of world, rank 0 of 2"
  std::string where() const { return where(op_, sequence()); }

  Options options_;
  std::shared_ptr<void> control_;
  std::unique_ptr<Fabric> fabric_;
  std::function<void()> idle_;
  ControlBlock block_;
  std::vector<Post> posts_;              // of the current operation, by rank
  std::array<Call, kPosts> calls_;       // the last calls of this rank, by sequence number modulo kPosts
  std::vector<std::uint64_t> compared_;  // by rank: its calls up to this one were compared with this rank's
  std::optional<CommError> late_mismatch_;
  std::vector<std::byte> payload_buffers_;
  RingWriter ring_;
  std::vector<RingReader> rings_;  // by rank
  PieceWriter piece_writer_;
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

template <class Ready, class Arrived>
void Group::await(const Ready& ready, const Arrived& arrived) {
  waiter_.wait(
      ready,
      [&](auto waited) {
        compare_those_here();
        give_up_if_lost(arrived, waited);
      },
      idle_);
}

}  // namespace phalanx::shared_memory
