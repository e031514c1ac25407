// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "framework/backends/shared_memory/fabric.h"
#include "framework/backends/shm/readable_by.h"

namespace phalanx::shm {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Processes of one host share memory files (memfd_create), which peers open through /proc/<pid>/fd.
///
/// Such a file is in no folder: nothing can be left behind, however the processes end, and the size of /dev/shm does
/// not limit it. The name that the kernel keeps for it holds the block's cookie, so open() takes nothing else for a
/// block, whatever process and descriptor a handle names. A peer's end shows at its pidfd. Needs Linux 5.3, one user,
/// and a process-id namespace that all ranks share. Other memory of a peer can be fetched (process_vm_readv) where the
/// system allows it, which some containers do not.
class MemfdFabric final : public shared_memory::Fabric {
 public:
  /// `processes`: the id of every rank's process. Throws CommError::kPeerLost naming the rank when one is gone already.
  explicit MemfdFabric(const std::vector<int>& processes);

  Block create(std::size_t bytes) override;
  std::shared_ptr<void> open(const Handle& handle) override;
  void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) override;
  void release() override { files_.clear(); }
  bool reaches_everything() const override { return false; }

  /// Whether this process can read a word of every peer's, given where that lies and what it holds.
  struct Word {
    const std::uint64_t* address = nullptr;
    std::uint64_t value = 0;
  };
  bool can_fetch(std::span<const Word> words);

  /// Lets the peers fetch from this process where the system has a process say who may (Yama), while this fabric or a
  /// subset of it lives. Before any of them calls can_fetch().
  void let_peers_fetch();

  /// From now on fetches() says whether all ranks can; where they cannot, peers may not read this process any more.
  void allow_fetching(bool all_can);
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
    std::shared_ptr<const Descriptor> ended;  // pidfd; none for this process itself. Shared with subsets: a peer may
                                              // have ended by then
  };

  MemfdFabric() = default;

  std::vector<Peer> peers_;
  std::vector<File> files_;                     // made or opened since the last release()
  std::shared_ptr<const ReadableBy> readable_;  // shared with subsets; null: peers need not fetch from this process
  bool fetches_ = false;
};

}  // namespace phalanx::shm
