// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shm/memfd_fabric.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx::shm {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw CommError(CommError::Kind::kSystem, "shm: " + what + ": " + std::strerror(error));
}

// Makes the system call directly: the C library has this function only since 2.36, and declares it there without extern
// "C".
int pidfd_open(int process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }

// Returns the number of bytes read, which may be less than `bytes`, or -1 and sets errno.
ssize_t read_from(int process, void* to, const void* from, std::size_t bytes) {
  const iovec here{to, bytes}, there{const_cast<void*>(from), bytes};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0);
}

std::shared_ptr<void> map(int fd, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail("cannot map " + std::to_string(bytes) + " bytes of shared memory", errno);
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // if the kernel supports it
  return {memory, [bytes](void* begin) { ::munmap(begin, bytes); }};
}

// Returns the name of the memory file with this cookie. The kernel keeps the name, so it proves which block a
// descriptor refers to.
std::string name_of(std::uint64_t cookie) {
  return format_text("phalanx-%016llx", static_cast<unsigned long long>(cookie));
}

std::uint64_t random_cookie() {
  std::uint64_t cookie = 0;
  if (::getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie)) fail("cannot draw a random number", errno);
  return cookie;
}

std::string link_at(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  return std::string(text.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
}

// A handle comes from a store or from shared memory and may name any descriptor of any process. The file must prove to
// be the block before anything is done to it: opening it with O_PATH has no effect, not even on a device.
Descriptor open_block(const shared_memory::Fabric::Handle& handle) {
  const std::string path = "/proc/" + std::to_string(handle.owner) + "/fd/" + std::to_string(handle.token);
  const Descriptor named(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!named.valid())
    fail("cannot open a peer's memory at " + path + " (ranks must run as one user, in one container)", errno);
  const std::string own_path = "/proc/self/fd/" + std::to_string(named.get());
  const std::string link = link_at(own_path), expected = "/memfd:" + name_of(handle.cookie);
  struct stat status{};
  const bool is_block = (link == expected || link == expected + " (deleted)") && ::fstat(named.get(), &status) == 0 &&
                        S_ISREG(status.st_mode) && status.st_size == handle.bytes && handle.bytes > 0;
  Descriptor fd(is_block ? ::open(own_path.c_str(), O_RDWR | O_CLOEXEC) : -1);
  if (is_block && !fd.valid()) fail("cannot open a peer's memory at " + path, errno);
  if (is_block && ::fcntl(fd.get(), F_GET_SEALS) >= 0) return fd;  // only memory files have seals
  throw CommError(CommError::Kind::kSystem,
                  "shm: " + path + " is not the shared memory of a rank (it is \"" + link + "\", not " +
                      std::to_string(handle.bytes) + " bytes of \"" + expected +
                      "\"): its rank has ended or runs in another container, or the store where the ranks meet holds " +
                      "what another job left; nothing was written there");
}

}  // namespace

MemfdFabric::MemfdFabric(const std::vector<int>& processes) {
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const int process = processes[rank];
    Descriptor peer(process == ::getpid() ? -1 : pidfd_open(process));
    if (process != ::getpid() && !peer.valid()) {
      const std::string who = "shm: rank " + std::to_string(rank) + ", process " + std::to_string(process);
      if (errno == ESRCH) throw CommError(CommError::Kind::kPeerLost, who + ", is gone or in another container");
      fail(who + " cannot be watched", errno);
    }
    peers_.push_back({process, std::make_shared<const Descriptor>(std::move(peer))});
  }
}

shared_memory::Fabric::Block MemfdFabric::create(std::size_t bytes) {
  const auto cookie = random_cookie();
  Descriptor fd(::memfd_create(name_of(cookie).c_str(), MFD_CLOEXEC));
  if (!fd.valid()) fail("cannot create a memory file", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    fail("no shared memory for " + std::to_string(bytes) + " bytes", errno);
  }
  const Handle handle{
      .owner = ::getpid(), .token = fd.get(), .bytes = static_cast<std::int64_t>(bytes), .cookie = cookie};
  auto memory = map(fd.get(), bytes);
  files_.push_back({handle, std::move(fd)});
  return {std::move(memory), handle};
}

std::shared_ptr<void> MemfdFabric::open(const Handle& handle) {
  Descriptor fd = open_block(handle);
  auto memory = map(fd.get(), static_cast<std::size_t>(handle.bytes));
  files_.push_back({handle, std::move(fd)});
  return memory;
}

void MemfdFabric::reserve(const Handle& handle, std::size_t offset, std::size_t bytes) {
  for (const auto& file : files_) {
    if (file.handle.owner != handle.owner || file.handle.token != handle.token) continue;
    int error = 0;
    do {
      error = ::posix_fallocate(file.descriptor.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (error == EINTR);
    if (error != 0) fail("no shared memory for " + std::to_string(bytes) + " bytes", error);
  }
}

bool MemfdFabric::can_fetch(std::span<const Word> words) {
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    std::uint64_t value = 0;
    if (read_from(peers_[rank].process, &value, words[rank].address, sizeof(value)) != sizeof(value)) return false;
    if (value != words[rank].value) return false;
  }
  return true;
}

void MemfdFabric::allow_peers_to_fetch() {
  std::vector<pid_t> others;
  for (const auto& peer : peers_) {
    if (peer.process != ::getpid()) others.push_back(peer.process);
  }
  readable_ = std::make_shared<const ReadableBy>(std::move(others));
}

void MemfdFabric::set_fetches(bool all_can) {
  fetches_ = all_can;
  if (!all_can) readable_.reset();
}

void MemfdFabric::fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t moved = read_from(peers_[rank].process, to, from, bytes);
    if (moved <= 0) {
      throw CommError(CommError::Kind::kPeerLost, "shm: the memory of rank " + std::to_string(rank) + ", process " +
                                                      std::to_string(peers_[rank].process) +
                                                      ", cannot be read any more: " + std::strerror(errno));
    }
    to += moved, from += moved, bytes -= static_cast<std::size_t>(moved);
  }
}

bool MemfdFabric::alive(int rank) {
  const Descriptor& peer = *peers_[rank].ended;
  if (!peer.valid()) return true;
  pollfd poll{.fd = peer.get(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) <= 0;  // a signal may interrupt the call
}

std::unique_ptr<shared_memory::Fabric> MemfdFabric::subset(std::span<const int> ranks) {
  std::unique_ptr<MemfdFabric> part(new MemfdFabric);
  for (int rank : ranks) part->peers_.push_back(peers_[rank]);
  part->fetches_ = fetches_;
  part->readable_ = readable_;
  return part;
}

}  // namespace phalanx::shm
