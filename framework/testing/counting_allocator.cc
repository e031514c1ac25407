// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace phalanx::testing {
namespace {

std::atomic<std::int64_t> live_bytes{0}, peak_bytes_of_cpu{0};

// Stores the size of each piece of memory in front of it.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, at::kCPU};
    const std::size_t rounded = (bytes + kFront - 1) / kFront * kFront;
    auto* const front = static_cast<std::byte*>(std::aligned_alloc(kFront, kFront + rounded));
    if (front == nullptr) throw std::bad_alloc();
    *reinterpret_cast<std::int64_t*>(front) = static_cast<std::int64_t>(bytes);
    CpuBytes::add(static_cast<std::int64_t>(bytes));
    return {front + kFront, front + kFront, &let_go, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &let_go; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static constexpr std::size_t kFront = 64;

  static void let_go(void* data) {
    if (data == nullptr) return;
    auto* const front = static_cast<std::byte*>(data) - kFront;
    CpuBytes::subtract(*reinterpret_cast<std::int64_t*>(front));
    std::free(front);
  }
};

}  // namespace

// The allocator is never destroyed: tensors may outlive main().
void CpuBytes::count() {
  static auto* const counting = new CountingAllocator;
  constexpr std::uint8_t kHighestPriority = 255;
  c10::SetCPUAllocator(counting, kHighestPriority);
}

std::int64_t CpuBytes::live() { return live_bytes; }

std::int64_t CpuBytes::peak() { return peak_bytes_of_cpu; }

void CpuBytes::begin_peak() { peak_bytes_of_cpu = live_bytes.load(); }

void CpuBytes::add(std::int64_t bytes) {
  const std::int64_t now = live_bytes += bytes;
  std::int64_t peak = peak_bytes_of_cpu;
  while (now > peak && !peak_bytes_of_cpu.compare_exchange_weak(peak, now)) {
  }
}

}  // namespace phalanx::testing
