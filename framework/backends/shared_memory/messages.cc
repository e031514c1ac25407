// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/messages.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "framework/backends/shared_memory/keep_until_exit.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
struct Messages::ToPeer {
  struct DirectSend {
    TransferPtr transfer;
    std::uint64_t slot;
  };
  std::deque<TransferPtr> waiting;  // for slots; the first may be in progress
  std::deque<DirectSend>
      direct;  // the receiver copies them from the sender's memory; in use until it has emptied the slot
};

// A message that is being received.
struct Messages::Incoming {
  std::size_t bytes = 0;
  int tag = 0;
  std::size_t moved = 0;
  TransferPtr receiver;                 // null until a receive is posted
  std::unique_ptr<std::byte[]> buffer;  // holds an unexpected message until then
  bool discard = false;

  bool complete() const { return moved == bytes; }
  std::byte* target() const {
    if (discard) return nullptr;
    return (buffer ? buffer.get() : receiver->data()) + moved;
  }
};

struct Messages::FromPeer {
  std::deque<TransferPtr> posted;                   // receives without a message
  std::shared_ptr<Incoming> current;                // begun, but not complete
  std::list<std::shared_ptr<Incoming>> unexpected;  // messages that arrived before their receives were posted
};

Messages::Messages(Group& group)
    : group_(group),
      direct_region_(group.fabric().reaches_everything() ? kEverywhere
                     : group.fabric().fetches()          ? kFetched
                                                         : 0),
      waiter_(group.options().local_ranks > 0 ? group.options().local_ranks : group.size(),
              group.options().local_cores),
      to_(group.size()),
      from_(group.size()) {}

Messages::~Messages() = default;

void Messages::send(const TransferPtr& transfer) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  to_[transfer->peer()].waiting.push_back(transfer);
  move_or_abandon([&] { fill_slots(transfer->peer()); });
}

void Messages::recv(const TransferPtr& transfer) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  auto& from = from_[transfer->peer()];
  const auto found = std::ranges::find_if(
      from.unexpected, [&](const auto& message) { return message->tag == transfer->tag() && !message->receiver; });
  if (found == from.unexpected.end()) {
    from.posted.push_back(transfer);
    move_or_abandon([&] { empty_slots(transfer->peer()); });
    return;
  }
  (*found)->receiver = transfer;
  if ((*found)->complete()) end(from, **found);
}

// If the group is broken, or there is no memory for an unexpected message, every transfer fails with that error.
template <class Move>
void Messages::move_or_abandon(const Move& move) {
  try {
    group_.throw_if_broken();
    move();
  } catch (const CommError& error) {
    group_.fail_between_calls(error);
    abandon_all();
  } catch (const std::exception& error) {
    group_.fail_between_calls(
        CommError(CommError::Kind::kSystem, "messages of " + group_.name() + ": " + error.what()));
    abandon_all();
  } catch (...) {
    group_.fail_between_calls(CommError(CommError::Kind::kSystem, "messages of " + group_.name() + " ended"));
    abandon_all();
    throw;
  }
}

void Messages::poll() {
  if (in_progress_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) move_or_abandon([this] { poll_locked(); });
}

void Messages::poll_locked() {
  for (int peer = 0; peer < group_.size(); ++peer) {
    fill_slots(peer);
    empty_slots(peer);
  }
}

void Messages::fill_slots(int peer) {
  auto& to = to_[peer];
  auto& channel = group_.channel_to(peer);
  const auto emptied = channel.emptied.load(std::memory_order_acquire);
  while (!to.direct.empty() && to.direct.front().slot < emptied) {
    complete(*to.direct.front().transfer);
    to.direct.pop_front();
  }
  auto filled = channel.filled.load(std::memory_order_relaxed);
  while (!to.waiting.empty() && filled - emptied < Channel::kSlots) {
    schedule_point();
    const bool all_gone = fill_slot(to, channel, filled);
    channel.filled.store(++filled, std::memory_order_release);
    if (!all_gone) continue;
    if (to.direct.empty() || to.direct.back().transfer != to.waiting.front()) complete(*to.waiting.front());
    to.waiting.pop_front();
  }
}

// Puts the next bytes of the first message into a slot. Returns true if they were the last.
bool Messages::fill_slot(ToPeer& to, Channel& channel, std::uint64_t slot) {
  const auto& transfer = to.waiting.front();
  auto& header = channel.headers[slot % Channel::kSlots];
  const bool direct = direct_region_ != 0 && transfer->bytes() > Channel::kSlotBytes;
  if (transfer->moved == 0) {
    header = {.bytes = static_cast<std::int64_t>(transfer->bytes()), .tag = transfer->tag(), .location = {}};
  }
  if (direct) {
    header.location = {reinterpret_cast<std::uint64_t>(transfer->data()), direct_region_};
    to.direct.push_back({transfer, slot});
    return true;
  }
  const std::size_t bytes = std::min(Channel::kSlotBytes, transfer->bytes() - transfer->moved);
  if (bytes > 0)
    std::memcpy(group_.data_to(transfer->peer()) + slot % Channel::kSlots * Channel::kSlotBytes,
                transfer->data() + transfer->moved, bytes);
  transfer->moved += bytes;
  return transfer->moved == transfer->bytes();
}

void Messages::empty_slots(int peer) {
  auto& from = from_[peer];
  auto& channel = group_.channel_from(peer);
  const auto filled = channel.filled.load(std::memory_order_acquire);
  for (auto emptied = channel.emptied.load(std::memory_order_relaxed); emptied < filled;) {
    schedule_point();
    const auto& header = channel.headers[emptied % Channel::kSlots];
    const bool begins = !from.current;
    if (begins) from.current = begin(from, header);
    Incoming& incoming = *from.current;
    const bool direct = begins && header.location.region != 0;
    const std::size_t bytes = direct ? incoming.bytes : std::min(Channel::kSlotBytes, incoming.bytes - incoming.moved);
    const auto* source = direct ? reinterpret_cast<const std::byte*>(header.location.offset)
                                : group_.data_from(peer) + emptied % Channel::kSlots * Channel::kSlotBytes;
    if (auto* target = incoming.target(); target != nullptr && bytes > 0) {
      if (direct && header.location.region == kFetched) {
        fetch(peer, incoming, source);
      } else {
        std::memcpy(target, source, bytes);
      }
    }
    incoming.moved += bytes;
    channel.emptied.store(++emptied, std::memory_order_release);
    if (!incoming.complete()) continue;
    const auto whole = std::exchange(from.current, nullptr);
    if (whole->receiver) end(from, *whole);
  }
}

// Fetches a message from a peer, which may have ended after it sent the header.
void Messages::fetch(int peer, const Incoming& incoming, const std::byte* source) {
  try {
    group_.fabric().fetch(peer, incoming.target(), source, incoming.bytes);
  } catch (const CommError& error) {
    if (!incoming.receiver) throw;
    const char* loss = group_.loss_of(peer);  // its memory disappears shortly before it is seen to have ended
    throw CommError(error.kind(), describe(*incoming.receiver) + ": rank " + std::to_string(peer) + ' ' +
                                      (loss == nullptr ? "ended" : loss));
  }
}

std::shared_ptr<Messages::Incoming> Messages::begin(FromPeer& from, const Channel::Header& header) {
  auto incoming = std::make_shared<Incoming>();
  incoming->bytes = static_cast<std::size_t>(header.bytes);
  incoming->tag = header.tag;
  const auto match =
      std::ranges::find_if(from.posted, [&](const auto& transfer) { return transfer->tag() == header.tag; });
  if (match == from.posted.end()) {
    incoming->buffer = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, incoming->bytes));
    from.unexpected.push_back(incoming);
  } else {
    incoming->receiver = *match;
    incoming->discard = (*match)->bytes() != incoming->bytes;
    from.posted.erase(match);
  }
  return incoming;
}

void Messages::end(FromPeer& from, Incoming& incoming) {
  const auto receiver = incoming.receiver;
  deliver(*receiver, incoming);
  std::erase_if(from.unexpected, [&](const auto& message) { return message.get() == &incoming; });
}

void Messages::deliver(Transfer& receiver, const Incoming& incoming) {
  if (receiver.bytes() != incoming.bytes) {
    const auto text = describe(receiver) + ": expected " + std::to_string(receiver.bytes()) + " bytes, but rank " +
                      std::to_string(receiver.peer()) + " sent " + std::to_string(incoming.bytes);
    complete(receiver, std::make_exception_ptr(CommError(CommError::Kind::kMismatch, text)));
    return;
  }
  if (incoming.buffer && incoming.bytes > 0) std::memcpy(receiver.data(), incoming.buffer.get(), incoming.bytes);
  complete(receiver);
}

void Messages::complete(Transfer& transfer, std::exception_ptr error) {
  transfer.complete(std::move(error));
  --in_progress_;
}

void Messages::await(Transfer& transfer, const std::function<void()>& poll_all) {
  const auto ready = [&] {
    if (transfer.done()) return true;
    poll_all();
    return transfer.done() || group_.broken();
  };
  bool recorded = false;
  waiter_.wait(ready, [&](auto waited) {
    if (!std::exchange(recorded, true)) record_wait(transfer);
    give_up_if_lost(transfer, std::chrono::duration<double>(waited).count());
  });
  if (transfer.done()) return;
  const std::lock_guard lock(mutex_);
  abandon_all();
}

void Messages::record_wait(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  if (!transfer.done()) transfer.recorder->started(transfer.ticket);
}

void Messages::give_up_if_lost(Transfer& transfer, double seconds) {
  const char* loss = group_.loss_of(transfer.peer());
  const bool late = seconds >= group_.options().timeout.count();
  if (loss == nullptr && !late) return;
  {
    const std::lock_guard lock(mutex_);
    poll_locked();  // the peer may have sent this message just before it ended
    if (transfer.done()) return;
  }
  std::ostringstream text;
  text.precision(3);
  text << describe(transfer) << ": ";
  if (loss != nullptr) {
    text << "rank " << transfer.peer() << ' ' << loss << " (noticed after " << seconds << " s)";
  } else {
    text << "waited " << seconds << " s for rank " << transfer.peer();
  }
  group_.fail_between_calls(
      CommError(loss != nullptr ? CommError::Kind::kPeerLost : CommError::Kind::kTimeout, text.str()));
}

// The group is broken, so missing messages will never arrive.
void Messages::abandon_all() {
  std::exception_ptr error;
  try {
    group_.throw_if_broken();
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& to : to_) {
    for (auto& [transfer, slot] : std::exchange(to.direct, {})) {
      keep_until_exit(transfer->tensor());
      complete(*transfer, error);
    }
    for (auto& transfer : std::exchange(to.waiting, {})) complete(*transfer, error);
  }
  for (auto& from : from_) {
    for (auto& transfer : std::exchange(from.posted, {})) complete(*transfer, error);
    if (from.current && from.current->receiver) {
      complete(*from.current->receiver, error);
      from.current->discard = true;
      from.current->receiver = nullptr;
    }
  }
}

std::string Messages::describe(const Transfer& transfer) const {
  return phalanx::describe(transfer.call()) + " #" + std::to_string(transfer.ticket.sequence) + " of " + group_.name() +
         ", rank " + std::to_string(group_.rank()) + " of " + std::to_string(group_.size());
}

}  // namespace phalanx::shared_memory
