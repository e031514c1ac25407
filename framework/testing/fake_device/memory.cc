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
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr std::size_t kBytes = std::size_t{32} << 30;  // address space; pages take memory once they are written
constexpr std::size_t kSmallest = 512;                 // the rounding of CUDA's caching allocator
constexpr int kNoStream = -1;

std::byte* reserve(int protection) {
  void* const address = ::mmap(nullptr, kBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::runtime_error("cannot reserve addresses for fake devices");
  return static_cast<std::byte*>(address);
}

// Allocates blocks whose sizes are powers of two and reuses freed blocks.
class Memory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
    const c10::Device device = guard.getDevice();
    if (bytes == 0) return {nullptr, device};
    auto& streams = Streams::global();
    const int stream = streams.number_of(device.index(), guard.getStream(device).id());
    make_room(bytes, device.index());
    const std::lock_guard lock(streams.mutex());
    std::byte* const address = take(bytes, device.index(), stream);
    if (streams.is_idle(stream)) {
      std::memset(mirror(address), 0xff, bytes);
    } else {  // earlier work of the stream may still use the memory
      streams.enqueue(stream, [to = mirror(address), bytes] { std::memset(to, 0xff, bytes); });
    }
    return {address, address, &deallocate, device};
  }

  void* allocate_plain(std::size_t bytes, c10::DeviceIndex device) {
    make_room(bytes, device);
    const std::lock_guard lock(Streams::global().mutex());
    std::byte* const address = take(std::max<std::size_t>(bytes, 1), device, kNoStream);
    std::memset(mirror(address), 0xff, bytes);
    return address;
  }

  bool free_plain(void* address) {
    auto& streams = Streams::global();
    c10::DeviceIndex device = 0;
    {
      const std::lock_guard lock(streams.mutex());
      const auto found = blocks_.find(address);
      if (found == blocks_.end() || found->second.stream != kNoStream) return false;
      device = found->second.device;
    }
    streams.synchronize_device(device);
    free(address);
    return true;
  }

  c10::DeleterFnPtr raw_deleter() const override { return &deallocate; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(mirror(to), mirror(from), bytes);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex device = 0; device < static_cast<c10::DeviceIndex>(stats_.size()); ++device) {
      Streams::global().synchronize_device(device);
    }
    const std::lock_guard lock(Streams::global().mutex());
    TORCH_CHECK(pool_ == 0, "cached memory cannot be freed while a graph is recorded");
    release_cached();
  }

  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    auto& streams = Streams::global();
    const std::lock_guard lock(streams.mutex());
    const auto found = blocks_.find(memory.get());
    if (found == blocks_.end()) return;
    const int number = streams.number_of(stream.device_index(), stream.id());
    if (number != found->second.stream) found->second.others.insert(number);
  }

  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(Streams::global().mutex());
    return stats_.at(static_cast<std::size_t>(device));
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    const std::lock_guard lock(Streams::global().mutex());
    auto& stats = stats_.at(static_cast<std::size_t>(device));
    sum(stats.allocated_bytes).reset_peak();
    sum(stats.reserved_bytes).reset_peak();
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    const std::lock_guard lock(Streams::global().mutex());
    return {limit_ - std::min(reserved_, limit_), limit_};
  }

  std::vector<std::byte> save() {
    const std::lock_guard lock(Streams::global().mutex());
    return {mirror_begin_, mirror_begin_ + used_};
  }
  void restore(const std::vector<std::byte>& saved) {
    const std::lock_guard lock(Streams::global().mutex());
    std::ranges::copy(saved, mirror_begin_);
  }
  void limit(std::size_t bytes) {
    const std::lock_guard lock(Streams::global().mutex());
    limit_ = bytes == 0 ? kBytes : bytes;
  }

  std::int64_t begin_pool() {
    const std::lock_guard lock(Streams::global().mutex());
    return pool_ = ++last_pool_;
  }
  void end_pool() {
    const std::lock_guard lock(Streams::global().mutex());
    pool_ = 0;
    for (auto& one : in_use_) mark(one);
  }
  void free_pool(std::int64_t pool) {
    const std::lock_guard lock(Streams::global().mutex());
    freed_pools_.insert(pool);
  }

  void* mirror(const void* address) const {
    return mirror_begin_ + (static_cast<const std::byte*>(address) - device_begin_);
  }
  bool is_mirror(const void* address) const { return address >= mirror_begin_ && address < mirror_begin_ + kBytes; }

  std::uint64_t allocation_at(const void* address) const {
    const std::lock_guard lock(Streams::global().mutex());
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return 0;
    const auto& [begin, block] = *std::prev(after);
    return address < static_cast<const std::byte*>(begin) + block.size ? block.number : 0;
  }

  bool is_device(const void* address) const { return address >= device_begin_ && address < device_begin_ + kBytes; }

 private:
  struct Block {
    std::size_t size = 0;
    c10::DeviceIndex device = 0;
    int stream = kNoStream;
    std::int64_t pool = 0;
    std::uint64_t number = 0;  // of the allocation
    std::set<int> others;      // from recordStream()
  };
  // A freed block that other streams may still use: until they have passed the points.
  struct InUse {
    std::byte* address;
    Block block;
    std::vector<Streams::PointPtr> points;

    bool is_marked() const { return points.size() == block.others.size(); }
  };
  using Key = std::tuple<std::int64_t, int, std::size_t>;  // pool, stream, size

  static void deallocate(void* address);

  std::byte* take(std::size_t bytes, c10::DeviceIndex device, int stream) {
    collect();
    const std::size_t size = rounded(bytes);
    std::byte* address = stream == kNoStream ? nullptr : cached({pool_, stream, size});
    if (address == nullptr) address = fresh(size, device);
    blocks_[address] = {
        .size = size, .device = device, .stream = stream, .pool = pool_, .number = ++last_number_, .others = {}};
    count(sum(stats_.at(static_cast<std::size_t>(device)).allocated_bytes), static_cast<std::int64_t>(size));
    return address;
  }

  std::byte* cached(const Key& key) {
    auto& free = free_[key];
    if (free.empty()) return nullptr;
    std::byte* const address = free.back();
    free.pop_back();
    return address;
  }

  static std::size_t rounded(std::size_t bytes) { return std::bit_ceil(std::max(bytes, kSmallest)); }

  // Returns cached blocks to the device if memory is short. As cudaFree, this waits for the device, so the caller must
  // not hold the lock.
  void make_room(std::size_t bytes, c10::DeviceIndex device) {
    {
      const std::lock_guard lock(Streams::global().mutex());
      if (reserved_ + rounded(bytes) <= limit_ || pool_ != 0) return;
    }
    Streams::global().synchronize_device(device);
    const std::lock_guard lock(Streams::global().mutex());
    release_cached();
  }

  // Memory of the device that no stream has.
  std::byte* fresh(std::size_t size, c10::DeviceIndex device) {
    TORCH_CHECK_WITH(OutOfMemoryError, reserved_ + size <= limit_, "CUDA out of memory. Tried to allocate ", size,
                     " bytes. GPU 0 has a total capacity of ", limit_, " bytes of which ",
                     limit_ - std::min(reserved_, limit_), " bytes is free. This device is fake.");
    auto& unused = unused_[size];
    std::byte* address = device_begin_ + used_;
    if (unused.empty()) {
      TORCH_CHECK_WITH(OutOfMemoryError, used_ + size <= kBytes, "the fake devices have no more addresses");
      used_ += size;
    } else {
      address = unused.back();
      unused.pop_back();
    }
    reserve_more(device, static_cast<std::int64_t>(size));
    return address;
  }

  void release_cached() {
    collect();
    for (auto at = free_.begin(); at != free_.end();) {
      const auto [pool, stream, size] = at->first;
      if (pool != 0 && !freed_pools_.contains(pool)) {
        ++at;
        continue;
      }
      for (std::byte* const address : at->second) {
        unused_[size].push_back(address);
        reserve_more(devices_.at(address), -static_cast<std::int64_t>(size));
      }
      at = free_.erase(at);
    }
  }

  void free(void* address) {
    auto& streams = Streams::global();
    const std::lock_guard lock(streams.mutex());
    const auto found = blocks_.find(address);
    InUse freed{.address = static_cast<std::byte*>(address), .block = std::move(found->second), .points = {}};
    blocks_.erase(found);
    count(sum(stats_.at(static_cast<std::size_t>(freed.block.device)).allocated_bytes),
          -static_cast<std::int64_t>(freed.block.size));
    if (pool_ == 0) mark(freed);
    in_use_.push_back(std::move(freed));
    collect();
  }

  // Marks the points at which other streams no longer use the block. LibTorch does not do that while a graph is
  // recorded, because nobody may ask for an event of the recording.
  static void mark(InUse& one) {
    if (one.is_marked()) return;
    for (const int other : one.block.others) one.points.push_back(Streams::global().record(other));
  }

  // Puts the blocks that no other stream uses any more into the cache. While a graph is recorded, LibTorch does not ask
  // for events.
  void collect() {
    auto& streams = Streams::global();
    std::erase_if(in_use_, [&](const InUse& one) {
      if (pool_ != 0 && !one.block.others.empty()) return false;
      if (!std::ranges::all_of(one.points, [&](const auto& point) { return streams.has_passed(point); })) return false;
      for (const int other : one.block.others) streams.forget(one.address, one.block.size, other);
      devices_[one.address] = one.block.device;
      if (one.block.stream == kNoStream) {
        unused_[one.block.size].push_back(one.address);
        reserve_more(one.block.device, -static_cast<std::int64_t>(one.block.size));
      } else {
        free_[{one.block.pool, one.block.stream, one.block.size}].push_back(one.address);
      }
      return true;
    });
  }

  static Stat& sum(c10::CachingAllocator::StatArray& stats) {
    return stats[static_cast<std::size_t>(StatType::AGGREGATE)];
  }
  static void count(Stat& stat, std::int64_t bytes) {
    if (bytes > 0) {
      stat.increase(static_cast<std::size_t>(bytes));
    } else {
      stat.decrease(static_cast<std::size_t>(-bytes));
    }
  }
  void reserve_more(c10::DeviceIndex device, std::int64_t bytes) {
    reserved_ = static_cast<std::size_t>(static_cast<std::int64_t>(reserved_) + bytes);
    count(sum(stats_.at(static_cast<std::size_t>(device)).reserved_bytes), bytes);
  }

  std::byte* const device_begin_ = reserve(PROT_NONE);
  std::byte* const mirror_begin_ = reserve(PROT_READ | PROT_WRITE);
  std::size_t used_ = 0;      // addresses that were ever given away
  std::size_t reserved_ = 0;  // memory in use or cached
  std::size_t limit_ = kBytes;
  std::int64_t pool_ = 0, last_pool_ = 0;  // 0: no pool of a graph
  std::uint64_t last_number_ = 0;
  std::set<std::int64_t> freed_pools_;
  std::map<std::size_t, std::vector<std::byte*>> unused_;  // by size
  std::map<Key, std::vector<std::byte*>> free_;
  std::map<const void*, Block> blocks_;              // in use
  std::map<const void*, c10::DeviceIndex> devices_;  // of freed blocks
  std::vector<InUse> in_use_;
  std::array<DeviceStats, 16> stats_;  // indexed by device
};

// Never destroyed: tensors may outlive main().
Memory& memory() {
  static auto& memory = *new Memory;
  return memory;
}

void Memory::deallocate(void* address) { memory().free(address); }

}  // namespace

c10::DeviceAllocator& fake_memory() { return memory(); }

void* mirror_of(const void* device_address) {
  return device_address == nullptr ? nullptr : memory().mirror(device_address);
}

bool is_in_mirror(const void* address) { return memory().is_mirror(address); }
bool is_device_address(const void* address) { return memory().is_device(address); }
std::uint64_t allocation_at(const void* address) { return memory().allocation_at(address); }

void* allocate_plain(std::size_t bytes, c10::DeviceIndex device) { return memory().allocate_plain(bytes, device); }
bool free_plain(void* address) { return memory().free_plain(address); }

std::vector<std::byte> save_fake_memory() { return memory().save(); }

void restore_fake_memory(const std::vector<std::byte>& saved) { memory().restore(saved); }

void limit_fake_memory(std::size_t bytes) { memory().limit(bytes); }

std::int64_t begin_pool() { return memory().begin_pool(); }
void end_pool() { memory().end_pool(); }
void free_pool(std::int64_t pool) { memory().free_pool(pool); }

}  // namespace phalanx::testing
