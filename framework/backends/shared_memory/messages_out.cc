// SPDX-License-Identifier: Apache-2.0
// The sender's side of Messages.
#include <algorithm>
#include <span>
#include <utility>

#include "framework/backends/shared_memory/message_queues.h"
#include "framework/backends/shared_memory/messages.h"

namespace phalanx::shared_memory {

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

}  // namespace phalanx::shared_memory
