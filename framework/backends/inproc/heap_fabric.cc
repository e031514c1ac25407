// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/inproc/heap_fabric.h"

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "framework/base/error.h"

namespace phalanx::inproc {
namespace {

// The blocks of all worlds of this process, by number. A peer may ask for a block whose owner has given up in the
// meantime.
class Blocks {
 public:
  static Blocks& all() {
    static auto& blocks = *new Blocks;  // never destroyed, because ranks may outlive static objects
    return blocks;
  }

  std::int64_t add(const std::shared_ptr<void>& memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(blocks_, [](const auto& block) { return block.second.expired(); });
    blocks_.emplace(++last_, memory);
    return last_;
  }

  std::shared_ptr<void> find(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(number);
    return found == blocks_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::weak_ptr<void>> blocks_;
  std::int64_t last_ = 0;
};

}  // namespace

shared_memory::Fabric::Block HeapFabric::create(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw CommError(CommError::Kind::kSystem, "inproc: no memory for " + std::to_string(bytes) + " bytes");
  }
  kept_.emplace_back(memory, [bytes](void* begin) { ::munmap(begin, bytes); });
  const std::int64_t number = Blocks::all().add(kept_.back());
  return {kept_.back(), {.owner = 0, .token = number, .bytes = static_cast<std::int64_t>(bytes)}};
}

std::shared_ptr<void> HeapFabric::open(const Handle& handle) {
  if (auto memory = Blocks::all().find(handle.token)) return memory;
  throw CommError(CommError::Kind::kPeerLost, "inproc: the rank that shares its memory has given up");
}

void HeapFabric::fetch(int, std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace phalanx::inproc
