// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/messages.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>

#include "framework/backends/shared_memory/keep_until_exit.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

// Slots that one poll fills or empties for a peer before it turns to the other direction.
constexpr std::uint64_t kSlotsPerPoll = 4;
// Polls that find no slot of a message before the receiver fetches the rest of it, and the bytes that it then claims at
// a time. The sender writes a slot in less time than these polls take, if it does nothing else.
constexpr int kPatience = 200;
constexpr std::size_t kClaimedBytes = 256 << 10;
// A rank that waits for a message looks for those of other groups less often.
constexpr int kPollsPerPollOfAll = 8;

}  // namespace

struct Messages::ToPeer {
  struct Sent {
    TransferPtr transfer;
    std::uint64_t number;  // of the slot, or of the claimable message
  };
  std::deque<TransferPtr> waiting;  // for slots; the first may be in progress
  std::deque<Sent> direct;          // the receiver copies them from the sender's memory; until their slot is emptied
  std::deque<Sent> partly_fetched;  // the receiver fetches the end of them; until they have been received
  std::uint64_t filled = 0;         // slots
  std::uint64_t known_emptied = 0;  // the value that this rank read last
  std::uint64_t claimable = 0;      // number of messages that the receiver may fetch
};

// A message that is being received.
struct Messages::Incoming {
  std::size_t bytes = 0;
  int tag = 0;
  Location location;
  std::size_t moved = 0;
  TransferPtr receiver;                 // null until a receive is posted
  std::unique_ptr<std::byte[]> buffer;  // holds an unexpected message until then
  bool discard = false;

  bool complete() const { return moved == bytes; }
  std::byte* target(std::size_t offset) const {
    if (discard) return nullptr;
    return (buffer ? buffer.get() : receiver->data()) + offset;
  }
};

struct Messages::FromPeer {
  std::deque<TransferPtr> posted;                   // receives without a message
  std::shared_ptr<Incoming> current;                // begun, but not complete
  std::list<std::shared_ptr<Incoming>> unexpected;  // messages that arrived before their receives were posted
  std::uint64_t emptied = 0;                        // slots
  std::uint64_t claimable = 0;                      // number of messages that this rank might fetch
  int fruitless = 0;                                // polls since the last slot of the current message
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
  move_or_abandon([&] { fill_slots(transfer->peer(), Channel::kSlots); });
}

void Messages::recv(const TransferPtr& transfer) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  auto& from = from_[transfer->peer()];
  const auto found = std::ranges::find_if(
      from.unexpected, [&](const auto& message) { return message->tag == transfer->tag() && !message->receiver; });
  if (found == from.unexpected.end()) {
    from.posted.push_back(transfer);
    move_or_abandon([&] { empty_slots(transfer->peer(), kSlotsPerPoll); });
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
    fill_slots(peer, kSlotsPerPoll);
    empty_slots(peer, kSlotsPerPoll);
  }
}

// Fills up to `most` slots.
void Messages::fill_slots(int peer, std::uint64_t most) {
  auto& to = to_[peer];
  complete_received(peer);
  for (std::uint64_t i = 0; i < most && !to.waiting.empty(); ++i) {
    if (to.filled - to.known_emptied == Channel::kSlots) {
      to.known_emptied = group_.channel_to(peer).emptied.load(std::memory_order_acquire);
      if (to.filled - to.known_emptied == Channel::kSlots) return;
    }
    schedule_point();
    if (fill_slot(peer, to.filled)) ++to.filled;
  }
}

// Completes sends that the receiver has read from this rank's memory.
void Messages::complete_received(int peer) {
  auto& to = to_[peer];
  const auto& channel = group_.channel_to(peer);
  const auto complete_up_to = [this](std::deque<ToPeer::Sent>& sent, const std::atomic<std::uint64_t>& reached) {
    while (!sent.empty() && sent.front().number <= reached.load(std::memory_order_acquire)) {
      complete(*sent.front().transfer);
      sent.pop_front();
    }
  };
  complete_up_to(to.direct, channel.emptied);
  complete_up_to(to.partly_fetched, channel.received);
}

// Puts the next bytes of the first message into a slot. Returns false if the receiver has claimed all that was left.
bool Messages::fill_slot(int peer, std::uint64_t slot) {
  auto& to = to_[peer];
  const TransferPtr transfer = to.waiting.front();
  auto& header = group_.channel_to(peer).headers[slot % Channel::kSlots];
  const auto publish = [&] { header.filled.store(slot + 1, std::memory_order_release); };
  if (transfer->moved == 0) {
    header.bytes = static_cast<std::int64_t>(transfer->bytes());
    header.tag = transfer->tag();
    header.location = {};
  }
  if (transfer->bytes() <= kSmallBytes) {
    write_small(*transfer, header, slot);
    finish_front(to);
  } else if (direct_region_ == kEverywhere && transfer->bytes() > ChannelData::kSlotBytes) {
    header.location = {reinterpret_cast<std::uint64_t>(transfer->data()), kEverywhere};
    publish();
    to.direct.push_back({transfer, slot + 1});
    to.waiting.pop_front();
  } else {
    const bool written = write_piece(peer, *transfer, header, slot);
    if (written) publish();
    return written;
  }
  return true;
}

// The receiver may see the header before the lines.
void Messages::write_small(const Transfer& transfer, Channel::Header& header, std::uint64_t slot) const {
  const std::span<const std::byte> bytes(transfer.data(), transfer.bytes());
  const auto head = bytes.first(std::min(bytes.size(), Channel::Header::kHeadBytes));
  std::ranges::copy(head, header.head);
  header.filled.store(slot + 1, std::memory_order_release);
  write_lines(group_.data_to(transfer.peer()).lines(slot), bytes.subspan(head.size()), slot + 1);
}

// Writes the next piece that the receiver has not claimed, and ends the send with its last byte.
bool Messages::write_piece(int peer, Transfer& transfer, Channel::Header& header, std::uint64_t slot) {
  auto& to = to_[peer];
  auto& channel = group_.channel_to(peer);
  const bool claimable = direct_region_ == kFetched && transfer.bytes() > ChannelData::kSlotBytes;
  const std::size_t step = ChannelData::step_of(transfer.bytes());
  std::size_t begin = transfer.moved;
  if (claimable && transfer.moved == 0) {
    header.location = {reinterpret_cast<std::uint64_t>(transfer.data()), kFetched};
    channel.claimed.store(Channel::Claim::pack(++to.claimable, step), std::memory_order_relaxed);
  } else if (claimable) {
    begin = claim(channel, to.claimable, transfer.bytes(), step);
  }
  const std::size_t bytes = std::min(step, transfer.bytes() - begin);
  if (bytes > 0) {
    piece_writer_.write(group_.data_to(peer).piece(slot), transfer.data() + begin, bytes);
    header.offset = begin;
    transfer.moved += bytes;
  }
  if (begin + bytes < transfer.bytes()) return true;
  if (transfer.moved == transfer.bytes()) {
    finish_front(to);
  } else {
    to.partly_fetched.push_back({std::move(to.waiting.front()), to.claimable});
    to.waiting.pop_front();
  }
  return bytes > 0;
}

void Messages::finish_front(ToPeer& to) {
  complete(*to.waiting.front());
  to.waiting.pop_front();
}

// Empties up to `most` slots.
void Messages::empty_slots(int peer, std::uint64_t most) {
  auto& from = from_[peer];
  auto& channel = group_.channel_from(peer);
  for (std::uint64_t i = 0; i < most; ++i) {
    const auto& header = channel.headers[from.emptied % Channel::kSlots];
    if (header.filled.load(std::memory_order_acquire) != from.emptied + 1) {
      if (i == 0) claim_rest(peer);
      return;
    }
    schedule_point();
    if (!empty_slot(peer, header, from.emptied)) return;
    from.fruitless = 0;
    channel.emptied.store(++from.emptied, std::memory_order_release);
  }
}

// Returns false if the slot's lines are not all there yet.
bool Messages::empty_slot(int peer, const Channel::Header& header, std::uint64_t slot) {
  auto& from = from_[peer];
  if (!from.current) {
    const auto bytes = static_cast<std::size_t>(header.bytes);
    const std::size_t in_lines = bytes > kSmallBytes ? 0 : bytes - std::min(bytes, Channel::Header::kHeadBytes);
    if (!lines_are_here(group_.data_from(peer).lines(slot), in_lines, slot + 1)) return false;
    if (take_at_once(from, peer, header, slot)) return true;
    from.current = begin(from, header);
    if (header.location.region == kFetched) ++from.claimable;
  }
  Incoming& incoming = *from.current;
  const bool direct = incoming.location.region == kEverywhere;
  const std::size_t offset = incoming.moved == 0 ? 0 : header.offset;
  const std::size_t step = incoming.bytes > kSmallBytes ? ChannelData::step_of(incoming.bytes) : kSmallBytes;
  const std::size_t bytes = direct ? incoming.bytes : std::min(step, incoming.bytes - offset);
  if (auto* target = incoming.target(offset); target != nullptr && bytes > 0) {
    if (incoming.bytes <= kSmallBytes) {
      read_small(target, header, bytes, peer, slot);
    } else {
      const auto* const source =
          direct ? reinterpret_cast<const std::byte*>(incoming.location.offset) : group_.data_from(peer).piece(slot);
      std::memcpy(target, source, bytes);
    }
  }
  arrived(peer, bytes);
  return true;
}

// Ends the current message if these were its last bytes.
void Messages::arrived(int peer, std::size_t bytes) {
  auto& from = from_[peer];
  from.current->moved += bytes;
  if (!from.current->complete()) return;
  const auto whole = std::exchange(from.current, nullptr);
  if (whole->location.region == kFetched) {
    schedule_point();
    group_.channel_from(peer).received.store(from.claimable, std::memory_order_release);
  }
  if (whole->receiver) end(from, *whole);
}

void Messages::read_small(std::byte* to, const Channel::Header& header, std::size_t bytes, int peer,
                          std::uint64_t slot) const {
  const std::size_t head = std::min(bytes, Channel::Header::kHeadBytes);
  std::memcpy(to, header.head, head);
  read_lines(to + head, group_.data_from(peer).lines(slot), 0, bytes - head, slot + 1, [](const auto&) {});
}

// Delivers a small message for which a receive of this size waits.
bool Messages::take_at_once(FromPeer& from, int peer, const Channel::Header& header, std::uint64_t slot) {
  const auto bytes = static_cast<std::size_t>(header.bytes);
  if (bytes > kSmallBytes) return false;
  const auto match =
      std::ranges::find_if(from.posted, [&](const auto& transfer) { return transfer->tag() == header.tag; });
  if (match == from.posted.end() || (*match)->bytes() != bytes) return false;
  const TransferPtr receiver = std::move(*match);
  from.posted.erase(match);
  read_small(receiver->data(), header, bytes, peer, slot);
  complete(*receiver);
  return true;
}

// Fetches the next part of the current message if its sender has not written a slot for long.
void Messages::claim_rest(int peer) {
  auto& from = from_[peer];
  if (!from.current || from.current->location.region != kFetched || ++from.fruitless < kPatience) return;
  const Incoming& incoming = *from.current;
  const std::size_t begin = claim(group_.channel_from(peer), from.claimable, incoming.bytes, kClaimedBytes);
  if (begin == incoming.bytes) return;  // the sender has claimed what is missing, and writes it
  schedule_point();
  const std::size_t bytes = std::min(kClaimedBytes, incoming.bytes - begin);
  if (!incoming.discard) fetch(peer, incoming, begin, bytes);
  arrived(peer, bytes);
}

// Fetches a part of a message from a peer, which may have ended after it sent the header.
void Messages::fetch(int peer, const Incoming& incoming, std::size_t begin, std::size_t bytes) {
  try {
    const auto* const source = reinterpret_cast<const std::byte*>(incoming.location.offset) + begin;
    group_.fabric().fetch(peer, incoming.target(begin), source, bytes);
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
  incoming->location = header.location;
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
  int asked = 0;
  const auto ready = [&] {
    if (transfer.done()) return true;
    poll();
    if (++asked % kPollsPerPollOfAll == 0 || scheduled()) poll_all();
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
    empty_slots(transfer.peer(), Channel::kSlots);  // the peer may have sent this message before it ended
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
    for (auto* sent : {&to.direct, &to.partly_fetched}) {
      for (auto& [transfer, number] : std::exchange(*sent, {})) {
        keep_until_exit(transfer->tensor());
        complete(*transfer, error);
      }
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
