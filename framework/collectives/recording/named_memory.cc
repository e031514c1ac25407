// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/named_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace phalanx::recording {

void NamedMemory::add(std::string name, const void* begin, std::size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  by_begin_[static_cast<const char*>(begin)] = {std::move(name), bytes};
}

std::vector<NamedMemory::Piece> NamedMemory::pieces(const void* memory, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(memory);
  const char* const end = at + bytes;
  std::vector<Piece> pieces;
  const std::lock_guard lock(mutex_);
  auto next = by_begin_.upper_bound(at);
  if (next != by_begin_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > at) next = before;
  }
  for (; next != by_begin_.end() && next->first < end; ++next) {
    if (next->first > at) pieces.push_back({"", at, static_cast<std::size_t>(next->first - at)});
    at = std::max(at, next->first);
    const char* const last = std::min(end, next->first + next->second.bytes);
    if (last <= at) continue;
    pieces.push_back({next->second.name, at, static_cast<std::size_t>(last - at)});
    at = last;
  }
  if (!pieces.empty() && at < end) pieces.push_back({"", at, static_cast<std::size_t>(end - at)});
  return pieces;
}

}  // namespace phalanx::recording
