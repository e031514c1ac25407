// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_index.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace phalanx::ps {

SparseIndex::SparseIndex(std::int64_t keys)
    : entries_(std::bit_ceil(std::max(kSmallest, 2 * static_cast<std::size_t>(keys)))),
      shift_(64 - std::countr_zero(entries_.size())) {}

void SparseIndex::insert(std::int64_t key, Slot slot) {
  if (2 * (size_ + 1) > entries_.size()) grow();
  entries_[place_of(key)] = {.key = key, .slot = slot};
  ++size_;
}

void SparseIndex::grow() {
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
  --shift_;
  hand_ = 0;
  for (const auto& entry : old) {
    if (entry.slot != kNone) entries_[place_of(entry.key)] = entry;
  }
}

SparseIndex::Slot SparseIndex::erase(std::int64_t key) {
  const std::size_t place = place_of(key);
  const Slot slot = entries_[place].slot;
  if (slot != kNone) erase_at(place);
  return slot;
}

// Entries behind the gap move up, unless that would place them before their home.
void SparseIndex::erase_at(std::size_t place) {
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t next = (place + 1) & mask; entries_[next].slot != kNone; next = (next + 1) & mask) {
    const std::size_t home = home_of(entries_[next].key);
    if (((next - home) & mask) < ((next - place) & mask)) continue;
    entries_[place] = entries_[next];
    place = next;
  }
  entries_[place] = {};
  --size_;
}

SparseIndex::Evicted SparseIndex::evict() {
  const std::size_t mask = entries_.size() - 1;
  while (true) {
    Entry& entry = entries_[hand_];
    if (entry.slot != kNone && entry.used == 0) {
      const Evicted evicted{.key = entry.key, .slot = entry.slot};
      erase_at(hand_);  // the entry that moves up is examined next
      return evicted;
    }
    entry.used = 0;
    hand_ = (hand_ + 1) & mask;
  }
}

std::int64_t SparseIndex::max_bytes(std::int64_t keys) {
  const auto entries = std::bit_ceil(2 * static_cast<std::uint64_t>(keys) + 2);
  return static_cast<std::int64_t>(sizeof(Entry) * (entries + entries / 2 + kSmallest));
}

}  // namespace phalanx::ps
