// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace phalanx::shared_memory {

/// How the ranks of a group come to share memory, and how they notice that one is gone: what differs between threads
/// and processes. One per rank and group; used by one thread at a time.
class Fabric {
 public:
  /// What a peer needs to open a block. Plain bytes: it travels through stores and shared memory.
  struct Handle {
    std::int64_t owner = 0;  // process id
    std::int64_t token = 0;  // file descriptor there, or an address
    std::int64_t bytes = 0;
    std::uint64_t cookie = 0;  // random, of this block: what lies at `token` must prove to be the block
  };
  struct Block {
    std::shared_ptr<void> memory;  // zeroed, aligned to a page
    Handle handle;                 // valid until release()
  };

  virtual ~Fabric() = default;

  /// New memory for the group. Throws CommError::kSystem when there is none.
  virtual Block create(std::size_t bytes) = 0;

  /// A peer's block. Throws CommError::kSystem when it cannot be reached or `handle` names something else.
  virtual std::shared_ptr<void> open(const Handle& handle) = 0;

  /// Takes physical memory for a part of a block now, so that a lack of it is an error here and not a signal later.
  virtual void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) = 0;

  /// After all ranks have opened the blocks made so far: their handles are needed no more.
  virtual void release() = 0;

  /// Whether every rank reaches all memory of every other, also what was not created here.
  virtual bool reaches_everything() const = 0;

  /// Whether every rank can fetch() from every other; the same on all ranks.
  virtual bool fetches() const = 0;

  /// Copies memory of a peer, whatever it is, by a call into the system. Throws CommError::kPeerLost where the peer has
  /// ended or has freed it.
  virtual void fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  virtual bool alive(int rank) = 0;

  /// The same for a group of some of these ranks, given by their ranks here in the new order.
  virtual std::unique_ptr<Fabric> subset(std::span<const int> ranks) = 0;
};

}  // namespace phalanx::shared_memory
