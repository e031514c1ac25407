// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>

#include "framework/backends/shared_memory/channel.h"
#include "framework/backends/shared_memory/messages.h"

namespace phalanx::shared_memory {

// The messages to and from one peer, for the files that implement Messages.

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

}  // namespace phalanx::shared_memory
