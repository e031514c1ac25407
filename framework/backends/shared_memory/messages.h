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

/// The messages of one rank in one group: sends and receives that are under way.
///
/// A message goes through the slots of its channel, in as many turns as it needs: poll() moves what can be moved and
/// never blocks. Where ranks reach all memory of each other, or can fetch it, one that is larger than a slot is copied
/// once, by the receiver, while the sender may compute. What comes before anybody asked for it is put aside, so that no
/// message holds up those behind it. Bytes copied: 2 n, or n where it is read in place.
///
/// Thread-safe.
class Messages {
 public:
  explicit Messages(Group& group);
  ~Messages();

  /// Begin at once, and go on in poll().
  void send(const TransferPtr& transfer);
  void recv(const TransferPtr& transfer);

  /// Cheap when nothing is under way.
  void poll();

  /// Blocks until the transfer is complete or has failed; `poll_all` moves the messages of all groups of this rank.
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
  const std::uint32_t lent_from_;  // region of what the receiver can read where it lies; 0: it cannot
  Waiter waiter_;
  std::atomic<int> under_way_{0};
  std::mutex mutex_;  // guards what follows, and the transfers in it
  std::vector<ToPeer> to_;
  std::vector<FromPeer> from_;
};

}  // namespace phalanx::shared_memory
