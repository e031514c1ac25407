// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/backends/shared_memory/group.h"
#include "framework/backends/shared_memory/transfer.h"

namespace phalanx::shared_memory {

/// The messages of one rank in one group: sends and receives in progress.
///
/// A message travels through the slots of its channel (channel.h). The sender writes pieces while the receiver takes
/// them, each when it polls; poll() moves what it can and never blocks. A send whose bytes fit into the free slots is
/// complete at once. An unexpected message, which arrives before its receive is posted, is buffered, so that no message
/// blocks later ones. Bytes copied: 2 n, or n for what the receiver reads from the sender's memory.
///
/// Thread-safe.
class Messages {
 public:
  explicit Messages(Group& group);
  ~Messages();

  /// Start a transfer, which goes on in poll().
  void send(const TransferPtr& transfer);
  void recv(const TransferPtr& transfer);

  /// Makes progress. Cheap if no message is in progress.
  void poll();

  /// Blocks until the transfer is complete or has failed. `poll_all` moves the messages of all groups of this rank.
  void await(Transfer& transfer, const std::function<void()>& poll_all);

  /// Breaks the group unless the transfer is complete. Then all transfers are complete.
  void abandon(Transfer& transfer);

 private:
  struct Incoming;
  struct ToPeer;
  struct FromPeer;

  template <class Move>
  void move_or_abandon(const Move& move);
  void poll_locked();
  void fill_slots(int peer, std::uint64_t most);
  bool fill_slot(int peer, std::uint64_t slot);
  void write_small(const Transfer& transfer, Channel::Header& header, std::uint64_t slot) const;
  bool write_piece(int peer, Transfer& transfer, Channel::Header& header, std::uint64_t slot);
  void finish_front(ToPeer& to);
  void complete_received(int peer);
  void empty_slots(int peer, std::uint64_t most);
  bool empty_slot(int peer, const Channel::Header& header, std::uint64_t slot);
  void arrived(int peer, std::size_t bytes);
  void read_small(std::byte* to, const Channel::Header& header, std::size_t bytes, int peer, std::uint64_t slot) const;
  bool take_at_once(FromPeer& from, int peer, const Channel::Header& header, std::uint64_t slot);
  void claim_rest(int peer);
  void fetch(int peer, const Incoming& incoming, std::size_t begin, std::size_t bytes);
  std::shared_ptr<Incoming> begin(FromPeer& from, const Channel::Header& header);
  void end(FromPeer& from, Incoming& incoming);
  void deliver(Transfer& receiver, const Incoming& incoming);
  void complete(Transfer& transfer, std::exception_ptr error = nullptr);
  void record_wait(Transfer& transfer);
  void give_up_if_lost(Transfer& transfer, double seconds);
  void call_check();
  void abandon_all();
  std::string describe(const Transfer& transfer) const;

  Group& group_;
  const std::uint32_t direct_region_;  // region in which receivers read the sender's memory directly; 0: they cannot
  PieceWriter piece_writer_;
  Waiter waiter_;
  std::atomic<int> in_progress_{0};
  std::mutex mutex_;  // guards the members below and the transfers in them
  std::vector<ToPeer> to_;
  std::vector<FromPeer> from_;
};

}  // namespace phalanx::shared_memory
