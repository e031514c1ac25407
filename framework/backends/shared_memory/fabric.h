// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace phalanx::shared_memory {

/// The interface through which the ranks of a group share memory and notice that a peer is gone. It is implemented for
/// threads and for processes. There is one per rank and group. Not thread-safe.
class Fabric {
 public:
  /// The data that a peer needs to open a block. Plain bytes, which travel through stores and shared memory.
  struct Handle {
    std::int64_t owner = 0;  // process id
    std::int64_t token = 0;  // file descriptor in that process, or an address
    std::int64_t bytes = 0;
    std::uint64_t cookie = 0;  // random number of this block: the memory at `token` must prove that it is the block
  };
  struct Block {
    std::shared_ptr<void> memory;  // zeroed, aligned to a page
    Handle handle;                 // valid until release()
  };

  virtual ~Fabric() = default;

  /// Creates memory for the group. Throws CommError::kSystem if there is not enough.
  virtual Block create(std::size_t bytes) = 0;

  /// Opens a block of a peer. Throws CommError::kSystem if it cannot be reached or if `handle` names something else.
  virtual std::shared_ptr<void> open(const Handle& handle) = 0;

  /// Allocates physical memory for a part of a block now, so that a lack of memory is an error here and not a signal
  /// later.
  virtual void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) = 0;

  /// Must be called after all ranks have opened the blocks created so far. Their handles are no longer needed.
  virtual void release() = 0;

  /// Returns true if every rank reaches all memory of every other rank, including memory that was not created here.
  virtual bool reaches_everything() const = 0;

  /// Returns true if every rank can fetch() from every other; the same on all ranks.
  virtual bool fetches() const = 0;

  /// Copies any memory of a peer with a system call. Throws CommError::kPeerLost if the peer has ended or has freed the
  /// memory.
  virtual void fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  virtual bool alive(int rank) = 0;

  /// Returns a fabric for a group of some of these ranks, given by their ranks here in the new order.
  virtual std::unique_ptr<Fabric> subset(std::span<const int> ranks) = 0;
};

}  // namespace phalanx::shared_memory
