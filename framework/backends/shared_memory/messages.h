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
/// A message travels through the slots of its channel, in as many steps as needed. poll() moves as much as possible and
/// never blocks. If ranks reach, or can fetch, all memory of each other, the receiver copies a message that is larger
/// than a slot directly, while the sender may compute. An unexpected message, which arrives before its receive is
/// posted, is buffered, so that no message blocks later ones. Bytes copied: 2 n, or n if the message is read in place.
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

 private:
  struct Incoming;
  struct ToPeer;
  struct FromPeer;

  template <class Move>
  void move_or_abandon(const Move& move);
  void poll_locked();
  void fill_slots(int peer);
  bool fill_slot(ToPeer& to, Channel& channel, std::uint64_t slot);
  void empty_slots(int peer);
  void fetch(int peer, const Incoming& incoming, const std::byte* source);
  std::shared_ptr<Incoming> begin(FromPeer& from, const Channel::Header& header);
  void end(FromPeer& from, Incoming& incoming);
  void deliver(Transfer& receiver, const Incoming& incoming);
  void complete(Transfer& transfer, std::exception_ptr error = nullptr);
  void record_wait(Transfer& transfer);
  void give_up_if_lost(Transfer& transfer, double seconds);
  void abandon_all();
  std::string describe(const Transfer& transfer) const;

  Group& group_;
  const std::uint32_t direct_region_;  // region in which receivers read the sender's memory directly; 0: they cannot
  Waiter waiter_;
  std::atomic<int> in_progress_{0};
  std::mutex mutex_;  // guards the members below and the transfers in them
  std::vector<ToPeer> to_;
  std::vector<FromPeer> from_;
};

}  // namespace phalanx::shared_memory
