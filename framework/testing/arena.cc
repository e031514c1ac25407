// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/arena.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>

namespace phalanx::testing {
namespace {

constexpr std::uint8_t kGuard = 0xa5;
constexpr std::size_t kGuardBytes = 64;

void fill_guards(const at::Tensor& bytes, std::size_t begin, std::size_t end) {
  bytes.narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin)).fill_(kGuard);
}

bool is_guard(const at::Tensor& bytes, std::size_t begin, std::size_t end) {
  const auto* data = bytes.const_data_ptr<std::uint8_t>();
  return std::all_of(data + begin, data + end, [](std::uint8_t byte) { return byte == kGuard; });
}

}  // namespace

const char* to_string(Memory memory) {
  switch (memory) {
    case Memory::kPrivate:
      return "private memory";
    case Memory::kAllocated:
      return "allocated memory";
    case Memory::kMixed:
      return "mixed memory";
  }
  return "";
}

Arena::Arena(Communicator& group, Memory memory, std::size_t bytes) : first_(static_cast<std::size_t>(group.rank())) {
  const auto size = static_cast<std::int64_t>(bytes + 8 * kGuardBytes);
  if (memory != Memory::kPrivate) regions_.push_back({.bytes = group.allocate({size}, at::kByte), .taken = {}});
  if (memory != Memory::kAllocated) regions_.push_back({.bytes = at::empty({size}, at::kByte), .taken = {}});
  reset();
}

void Arena::reset() {
  takes_ = 0;
  for (auto& region : regions_) {
    fill_guards(region.bytes, 0, kGuardBytes);
    region.used = 0;
    region.taken.clear();
  }
}

at::Tensor Arena::take(std::int64_t elements, at::ScalarType dtype) {
  auto& region = regions_[(first_ + takes_++) % regions_.size()];
  const std::size_t item = at::elementSize(dtype), bytes = item * static_cast<std::size_t>(elements);
  const std::size_t begin = (region.used + kGuardBytes) / 16 * 16 + item, end = begin + bytes;
  if (end + kGuardBytes > static_cast<std::size_t>(region.bytes.numel())) throw std::logic_error("arena: too small");
  fill_guards(region.bytes, region.used, end + kGuardBytes);
  region.used = end;
  region.taken.emplace_back(begin, end);
  return region.bytes.narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(bytes)).view(dtype);
}

at::Tensor Arena::take(const at::Tensor& values) { return take(values.numel(), values.scalar_type()).copy_(values); }

bool Arena::guards_are_intact() const {
  return std::ranges::all_of(regions_, [](const Region& region) {
    std::size_t at = 0;
    for (const auto& [begin, end] : region.taken) {
      if (!is_guard(region.bytes, at, begin)) return false;
      at = end;
    }
    return is_guard(region.bytes, at, at + kGuardBytes);
  });
}

}  // namespace phalanx::testing
