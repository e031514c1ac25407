// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace phalanx::ps {

/// Accesses the memory of a client on the same host. Large tensors are then copied once, by the server, instead of
/// going through a socket. Threads of this process share its memory in any case.
///
/// A client can only give access to its own memory: the kernel lets a process access another one only if it could debug
/// it (process_vm_readv(2)).
class PeerMemory {
 public:
  /// Returns access to the process at the other end of a Unix socket. Returns nothing if the system does not permit it,
  /// which is tested by comparing `check` with the memory at `address` of that process.
  static std::optional<PeerMemory> behind(int socket, std::uint64_t address, const std::string& check);

  /// Returns true if the client is a thread of this process, whose memory can be used directly.
  bool is_ours() const;

  /// Copy memory. Return false if the client is another process that is gone or has no such memory; part of it may have
  /// been copied. A thread of this process must not free memory that it has offered.
  bool read(std::uint64_t address, void* to, std::size_t bytes) const;
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;

 private:
  explicit PeerMemory(pid_t process) : process_(process) {}

  pid_t process_;
};

}  // namespace phalanx::ps
