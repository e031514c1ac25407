// SPDX-License-Identifier: Apache-2.0
// The receiver's side of Messages.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "framework/backends/shared_memory/message_queues.h"
#include "framework/backends/shared_memory/messages.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

// Polls that find no slot of a message before the receiver fetches the rest of it, and the bytes that it then claims at
// a time. The sender writes a slot in less time than these polls take, if it does nothing else.
constexpr int kPatience = 200;
constexpr std::size_t kClaimedBytes = 256 << 10;

}  // namespace

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
  if (bytes == 0) return;
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

}  // namespace phalanx::shared_memory
