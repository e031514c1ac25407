// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/pinned_memory.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace phalanx::testing {
namespace {

class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    void* const address = ::operator new(bytes, kAligned);
    std::memset(address, 0xff, bytes);
    const std::lock_guard lock(mutex_);
    ends_[static_cast<std::byte*>(address)] = static_cast<std::byte*>(address) + bytes;
    return {address, address, &deallocate, c10::kCPU};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &deallocate; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

  bool has(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto after = ends_.upper_bound(static_cast<const std::byte*>(address));
    return after != ends_.begin() && std::prev(after)->second > address;
  }

 private:
  static constexpr std::align_val_t kAligned{64};

  static void deallocate(void* address);

  std::mutex mutex_;
  std::map<const std::byte*, const std::byte*> ends_;  // by first address
};

// Never destroyed: tensors may outlive main().
PinnedMemory& memory_of_host() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

void PinnedMemory::deallocate(void* address) {
  {
    PinnedMemory& self = memory_of_host();
    const std::lock_guard lock(self.mutex_);
    self.ends_.erase(static_cast<std::byte*>(address));
  }
  ::operator delete(address, kAligned);
}

}  // namespace

c10::Allocator& pinned_memory() { return memory_of_host(); }

bool is_pinned_address(const void* address) { return memory_of_host().has(address); }

}  // namespace phalanx::testing
