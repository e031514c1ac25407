// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server/peer_memory.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace phalanx::ps {
namespace {

// Repeats the copy, since the kernel copies at most 2 GB per call.
template <class Copy>
bool copy_all(std::uint64_t remote, char* local, std::size_t bytes, const Copy& copy) {
  while (bytes > 0) {
    const iovec here{local, bytes};
    const iovec there{reinterpret_cast<void*>(remote), bytes};
    const ssize_t count = copy(here, there);
    if (count <= 0) return false;
    remote += count, local += count, bytes -= count;
  }
  return true;
}

}  // namespace

std::optional<PeerMemory> PeerMemory::behind(int socket, std::uint64_t address, const std::string& check) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (address == 0 || check.empty()) return {};
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return {};
  const PeerMemory memory(peer.pid);
  std::string found(check.size(), '\0');
  if (!memory.read(address, found.data(), found.size()) || found != check) return {};
  return memory;
}

bool PeerMemory::is_ours() const { return process_ == ::getpid(); }

bool PeerMemory::read(std::uint64_t address, void* to, std::size_t bytes) const {
  return copy_all(address, static_cast<char*>(to), bytes, [this](const iovec& here, const iovec& there) {
    return ::process_vm_readv(process_, &here, 1, &there, 1, 0);
  });
}

bool PeerMemory::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  if (is_ours()) {  // the kernel would take twice as long
    if (bytes > 0) std::memcpy(reinterpret_cast<void*>(address), from, bytes);
    return true;
  }
  return copy_all(
      address, static_cast<char*>(const_cast<void*>(from)), bytes,
      [this](const iovec& here, const iovec& there) { return ::process_vm_writev(process_, &here, 1, &there, 1, 0); });
}

}  // namespace phalanx::ps
