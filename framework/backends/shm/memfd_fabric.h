// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/backends/shared_memory/fabric.h"
#include "framework/backends/shm/readable_by.h"
#include "framework/base/descriptor.h"

namespace phalanx::shm {

/// A fabric for the processes of one host. They share memory files (memfd_create), which peers open through
/// /proc/<pid>/fd.
///
/// Such a file is in no folder, so nothing can remain however the processes end, and the size of /dev/shm does not
/// limit it. The kernel keeps a name for the file, which contains the block's cookie. So open() accepts nothing but the
/// block, whatever process and descriptor a handle names. A pidfd shows when a peer has ended. Needs Linux 5.3, one
/// user, and a process-id namespace that all ranks share. Other memory of a peer can be fetched (process_vm_readv) if
/// the system allows it, which some containers do not.
class MemfdFabric final : public shared_memory::Fabric {
 public:
  /// `processes` are the process ids of all ranks. Throws CommError::kPeerLost, which names the rank, if one of them is
  /// already gone.
  explicit MemfdFabric(const std::vector<int>& processes);

  Block create(std::size_t bytes) override;
  std::shared_ptr<void> open(const Handle& handle) override;
  void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) override;
  void release() override { files_.clear(); }
  bool reaches_everything() const override { return false; }

  /// A word in a peer's memory, with its address and value. can_fetch() returns true if this process can read a word of
  /// every peer.
  struct Word {
    const std::uint64_t* address = nullptr;
    std::uint64_t value = 0;
  };
  bool can_fetch(std::span<const Word> words);

  /// Allows the peers to fetch from this process, on systems where a process must name its readers (Yama), as long as
  /// this fabric or a subset of it lives. Must be called before any peer calls can_fetch().
  void allow_peers_to_fetch();

  /// Sets the result of fetches(): true if all ranks can fetch. If false, peers may no longer read this process.
  void set_fetches(bool all_can);
  bool fetches() const override { return fetches_; }
  void fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) override;

  bool alive(int rank) override;
  std::unique_ptr<Fabric> subset(std::span<const int> ranks) override;

 private:
  struct File {
    Handle handle;
    Descriptor descriptor;
  };
  struct Peer {
    int process = 0;
    // pidfd; none for this process itself. Shared with subsets, because a peer may have ended by then.
    std::shared_ptr<const Descriptor> ended;
  };

  MemfdFabric() = default;

  std::vector<Peer> peers_;
  std::vector<File> files_;                     // created or opened since the last release()
  std::shared_ptr<const ReadableBy> readable_;  // shared with subsets; null: peers need not fetch from this process
  bool fetches_ = false;
};

}  // namespace phalanx::shm
