// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/backends/shared_memory/communicator.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
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

// Ranks are threads, so all memory is accessible to all ranks. A rank that ends announces it by leaving its group.
class HeapFabric final : public shared_memory::Fabric {
 public:
  Block create(std::size_t bytes) override {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw CommError(CommError::Kind::kSystem, "inproc: no memory for " + std::to_string(bytes) + " bytes");
    }
    kept_.emplace_back(memory, [bytes](void* begin) { ::munmap(begin, bytes); });
    const std::int64_t number = Blocks::all().add(kept_.back());
    return {kept_.back(), {.owner = 0, .token = number, .bytes = static_cast<std::int64_t>(bytes)}};
  }

  std::shared_ptr<void> open(const Handle& handle) override {
    if (auto memory = Blocks::all().find(handle.token)) return memory;
    throw CommError(CommError::Kind::kPeerLost, "inproc: the rank that shares its memory has given up");
  }

  void reserve(const Handle&, std::size_t, std::size_t) override {}
  void release() override { kept_.clear(); }
  bool reaches_everything() const override { return true; }
  bool fetches() const override { return false; }  // all memory is within reach
  void fetch(int, std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  bool alive(int) override { return true; }
  std::unique_ptr<Fabric> subset(std::span<const int>) override { return std::make_unique<HeapFabric>(); }

 private:
  std::vector<std::shared_ptr<void>> kept_;  // blocks created here, until release()
};

struct InprocConfig {
  template <class V>
  void visit(V&) {}
};

const bool inproc_registered = Backends::global().add<InprocConfig>(
    "inproc", "ranks are threads of one process",
    BackendTraits{.threads = true, .shared = BackendTraits::Memory::kAll, .automatic = WorldKind::kOneRank},
    [](const InprocConfig&, const ConnectOptions& options) {
      return shared_memory::connect("inproc", options, std::make_unique<HeapFabric>());
    });

}  // namespace
}  // namespace phalanx
