// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace phalanx::ps {

/// The memory of a client on this host, so that large tensors are copied once, by the server, and not through a socket.
/// Threads of this process have it in common anyway.
///
/// A client is trusted with its own memory only: the kernel lets one process reach another if it could debug it
/// (process_vm_readv(2)).
class PeerMemory {
 public:
  /// Of the process at the other end of a Unix socket. Nothing where the system does not let us reach it, which `check`
  /// at `address` there shows.
  static std::optional<PeerMemory> behind(int socket, std::uint64_t address, const std::string& check);

  /// Whether the client is a thread of this process: its memory is here.
  bool is_ours() const;

  /// Copies. False: the client is gone, or has no such memory; a part may have been copied.
  bool read(std::uint64_t address, void* to, std::size_t bytes) const;
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;

 private:
  explicit PeerMemory(pid_t process) : process_(process) {}

  pid_t process_;
};

}  // namespace phalanx::ps
