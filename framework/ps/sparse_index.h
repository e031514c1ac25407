// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace phalanx::ps {

/// Which slot belongs to which key: a hash table with linear probing, at most half full, whose entries lie in one array
/// (16 bytes each, four to a cache line), so that most look-ups cost one miss, which prefetch() can hide. Entries that
/// are erased are filled from behind (Knuth, The Art of Computer Programming 3, algorithm 6.4R), so that look-ups do
/// not slow down as keys come and go.
///
/// It also says who has to go when slots run out, by the second-chance approximation of least recently used (Corbato
/// 1968, A Paging Experiment with the Multics System): a hand goes round the entries and takes the first that was not
/// used since it came by.
class SparseIndex {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;

  /// Does not grow up to this many keys.
  explicit SparseIndex(std::int64_t keys = 0);

  std::size_t size() const { return size_; }

  void prefetch(std::int64_t key) const { __builtin_prefetch(&entries_[home_of(key)]); }

  /// kNone: there is none.
  Slot find(std::int64_t key) const { return entries_[place_of(key)].slot; }

  /// The same, and the hand spares it next time.
  Slot use(std::int64_t key) {
    Entry& entry = entries_[place_of(key)];
    if (entry.slot != kNone) entry.used = 1;
    return entry.slot;
  }

  /// The key must not be there.
  void insert(std::int64_t key, Slot slot);

  /// Of the key that was removed; kNone: it was not there.
  Slot erase(std::int64_t key);

  struct Evicted {
    std::int64_t key;
    Slot slot;
  };

  /// Removes a key that was not used lately. There must be one.
  Evicted evict();

  /// Calls `visit(key, slot)` for each, in no particular order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& entry : entries_) {
      if (entry.slot != kNone) visit(entry.key, entry.slot);
    }
  }

  /// The same of up to `most` keys, from place `first` on. Where to go on; -1: there are no more.
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

  /// Bytes that an index of this many keys takes at most, also while it grows.
  static std::int64_t most_bytes(std::int64_t keys);

 private:
  struct Entry {
    std::int64_t key = 0;
    Slot slot = kNone;
    std::uint32_t used = 0;
  };
  static_assert(sizeof(Entry) == 16);

  static constexpr std::size_t kSmallest = 64;

  // Multiplying scatters upwards: the high bits depend on all of the key.
  std::size_t home_of(std::int64_t key) const {
    auto bits = static_cast<std::uint64_t>(key);
    bits = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15;
    return ((bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9) >> shift_;
  }

  // Where the key is, or else would go.
  std::size_t place_of(std::int64_t key) const {
    std::size_t place = home_of(key);
    while (entries_[place].slot != kNone && entries_[place].key != key) place = (place + 1) & (entries_.size() - 1);
    return place;
  }

  void erase_at(std::size_t place);
  void grow();

  std::vector<Entry> entries_;  // a power of two
  int shift_;                   // 64 less its logarithm
  std::size_t size_ = 0;
  std::size_t hand_ = 0;
};

}  // namespace phalanx::ps
