#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "framework/backends/direct/fabric.h"

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
/// Such a file has no name: nothing can be left behind, however the processes end, and the size of /dev/shm does not
/// limit it. A peer's end shows at its pidfd. Needs Linux 5.3, one user, and a process-id namespace that all ranks
/// share.
class MemfdFabric final : public direct::Fabric {
 public:
  /// `processes`: the id of every rank's process. Throws CommError::kPeerLost naming the rank when one is gone already.
  explicit MemfdFabric(const std::vector<int>& processes);

  Block create(std::size_t bytes) override;
  std::shared_ptr<void> open(const Handle& handle) override;
  void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) override;
  void release() override { files_.clear(); }
  bool reaches_everything() const override { return false; }
  bool alive(int rank) override;
  std::unique_ptr<Fabric> subset(std::span<const int> ranks) override;

 private:
  struct File {
    Handle handle;
    Descriptor descriptor;
  };
  using Peers = std::vector<std::shared_ptr<const Descriptor>>;

  MemfdFabric() = default;

  Peers peers_;              // pidfds; none for this process itself. Shared with subsets: a peer may have ended by then
  std::vector<File> files_;  // made or opened since the last release()
};

}  // namespace phalanx::shm
