// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace phalanx::ps {

/// Maps keys to slots: a hash table with linear probing that is at most half full. Its entries lie in one array (16
/// bytes each, four to a cache line), so most look-ups cost one cache miss, which prefetch() can hide. An erased entry
/// is filled with one behind it (Knuth, The Art of Computer Programming 3, algorithm 6.4R), so look-ups do not slow
/// down as keys come and go.
///
/// It also chooses the key to evict when there are no free slots, by the second-chance approximation of least recently
/// used (Corbato 1968, A Paging Experiment with the Multics System). A hand moves round the entries and takes the first
/// one that has not been used since the hand last passed it.
class SparseIndex {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;

  /// Creates an index that does not grow until it has more than `keys` keys.
  explicit SparseIndex(std::int64_t keys = 0);

  std::size_t size() const { return size_; }

  void prefetch(std::int64_t key) const { __builtin_prefetch(&entries_[home_of(key)]); }

  /// Returns the slot of the key, or kNone.
  Slot find(std::int64_t key) const { return entries_[place_of(key)].slot; }

  /// Does the same as find(), and protects the key when the hand passes it the next time.
  Slot use(std::int64_t key) {
    Entry& entry = entries_[place_of(key)];
    if (entry.slot != kNone) entry.used = 1;
    return entry.slot;
  }

  /// Adds a key, which must not be present.
  void insert(std::int64_t key, Slot slot);

  /// Removes a key and returns its slot, or kNone if the key was not present.
  Slot erase(std::int64_t key);

  struct Evicted {
    std::int64_t key;
    Slot slot;
  };

  /// Removes a key that has not been used recently. The index must not be empty.
  Evicted evict();

  /// Calls `visit(key, slot)` for each key, in no particular order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& entry : entries_) {
      if (entry.slot != kNone) visit(entry.key, entry.slot);
    }
  }

  /// Does the same for up to `most` keys, starting at place `first`. Returns the place to continue from, or -1 if there
  /// are no more keys.
  template <class Visit>
  std::int64_t for_each_from(std::int64_t first, std::int64_t most, const Visit& visit) const {
    for (auto place = static_cast<std::uint64_t>(first); place < entries_.size(); ++place) {
      const Entry& entry = entries_[place];
      if (entry.slot == kNone) continue;
      if (most-- == 0) return static_cast<std::int64_t>(place);
      visit(entry.key, entry.slot);
    }
    return -1;
  }

  /// Returns the maximum size in bytes of an index with this many keys, including while it grows.
  static std::int64_t max_bytes(std::int64_t keys);

 private:
  struct Entry {
    std::int64_t key = 0;
    Slot slot = kNone;
    std::uint32_t used = 0;
  };
  static_assert(sizeof(Entry) == 16);

  static constexpr std::size_t kSmallest = 64;

  // Multiplication only mixes bits upwards: the high bits depend on the whole key.
  std::size_t home_of(std::int64_t key) const {
    auto bits = static_cast<std::uint64_t>(key);
    bits = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15;
    return ((bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9) >> shift_;
  }

  // Returns the place of the key, or the place where it would be inserted.
  std::size_t place_of(std::int64_t key) const {
    std::size_t place = home_of(key);
    while (entries_[place].slot != kNone && entries_[place].key != key) place = (place + 1) & (entries_.size() - 1);
    return place;
  }

  void erase_at(std::size_t place);
  void grow();

  std::vector<Entry> entries_;  // the size is a power of two
  int shift_;                   // 64 minus log2 of the size
  std::size_t size_ = 0;
  std::size_t hand_ = 0;
};

}  // namespace phalanx::ps
