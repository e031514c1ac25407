// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/memory.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace phalanx::testing {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr std::size_t kBytes = std::size_t{8} << 30;  // address space; pages take memory once they are written
constexpr std::size_t kSmallest = 512;                // the rounding of CUDA's caching allocator

std::byte* reserve(int protection) {
  void* const address = ::mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::runtime_error("cannot reserve addresses for fake devices");
  return static_cast<std::byte*>(address);
}

// Allocates blocks whose sizes are powers of two and reuses freed blocks.
class Memory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device = c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice();
    if (bytes == 0) return {nullptr, device};
    const std::lock_guard lock(mutex_);
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    auto& free = free_[size];
    std::byte* address = nullptr;
    if (free.empty()) {
      TORCH_CHECK_WITH(OutOfMemoryError, used_ + size <= limit_, "CUDA out of memory. Tried to allocate ", size,
                       " bytes. GPU 0 has a total capacity of ", limit_, " bytes of which ",
                       limit_ - std::min(used_, limit_), " bytes is free. This device is fake.");
      address = device_begin_ + used_;
      used_ += size;
    } else {
      address = free.back();
      free.pop_back();
    }
    std::memset(mirror(address), 0xff, bytes);
    blocks_[address] = {size, device.index()};
    count(device.index(), static_cast<std::int64_t>(size));
    return {address, address, &deallocate, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &deallocate; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(mirror(to), mirror(from), bytes);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex_);
    return stats_.at(static_cast<std::size_t>(device));
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(mutex_);
    total(device).reset_peak();
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    return {limit_ - std::min(used_, limit_), limit_};
  }

  std::vector<std::byte> save() {
    const std::lock_guard lock(mutex_);
    return {mirror_begin_, mirror_begin_ + used_};
  }
  void restore(const std::vector<std::byte>& saved) {
    const std::lock_guard lock(mutex_);
    std::ranges::copy(saved, mirror_begin_);
  }
  void limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes == 0 ? kBytes : bytes;
  }

  void* mirror(const void* address) const {
    return mirror_begin_ + (static_cast<const std::byte*>(address) - device_begin_);
  }

 private:
  static void deallocate(void* address);

  Stat& total(c10::DeviceIndex device) {
    return stats_.at(static_cast<std::size_t>(device)).allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)];
  }
  void count(c10::DeviceIndex device, std::int64_t bytes) {
    if (bytes > 0) {
      total(device).increase(static_cast<std::size_t>(bytes));
    } else {
      total(device).decrease(static_cast<std::size_t>(-bytes));
    }
  }

  struct Block {
    std::size_t size = 0;
    c10::DeviceIndex device = 0;
  };

  std::byte* const device_begin_ = reserve(PROT_NONE);
  std::byte* const mirror_begin_ = reserve(PROT_READ | PROT_WRITE);
  std::mutex mutex_;
  std::size_t used_ = 0, limit_ = kBytes;
  std::map<std::size_t, std::vector<std::byte*>> free_;  // keyed by size
  std::map<const void*, Block> blocks_;                  // in use
  std::array<DeviceStats, 16> stats_;                    // indexed by device
};

// Never destroyed: tensors may outlive main().
Memory& memory() {
  static auto& memory = *new Memory;
  return memory;
}

void Memory::deallocate(void* address) {
  Memory& self = memory();
  const std::lock_guard lock(self.mutex_);
  const auto found = self.blocks_.find(address);
  self.count(found->second.device, -static_cast<std::int64_t>(found->second.size));
  self.free_[found->second.size].push_back(static_cast<std::byte*>(address));
  self.blocks_.erase(found);
}

}  // namespace

c10::DeviceAllocator& fake_memory() { return memory(); }

void* mirror_of(const void* device_address) {
  return device_address == nullptr ? nullptr : memory().mirror(device_address);
}

std::vector<std::byte> save_fake_memory() { return memory().save(); }

void restore_fake_memory(const std::vector<std::byte>& saved) { memory().restore(saved); }

void limit_fake_memory(std::size_t bytes) { memory().limit(bytes); }

}  // namespace phalanx::testing
