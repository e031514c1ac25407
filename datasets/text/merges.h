// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phalanx {

/// The merges of a byte-pair encoding (Sennrich et al. 2015, algorithm 1).
class Merges {
 public:
  /// Adds the merge of the pair into `merged`, which takes precedence over later merges. If a pair is added twice, the
  /// last one counts, as in Hugging Face's tokenizers.
  void add(std::int64_t left, std::int64_t right, std::int64_t merged);

  /// Merges the tokens of a word: repeatedly replaces the pair of neighbours whose merge was added first, and among
  /// equal pairs the leftmost, until no pair has a merge. Takes O(n log n) time for n tokens.
  std::vector<std::int64_t> apply(const std::vector<std::int64_t>& tokens) const;

 private:
  using Pair = std::pair<std::int64_t, std::int64_t>;
  struct Merge {
    std::int64_t rank, merged;
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const {
      return std::hash<std::uint64_t>()(static_cast<std::uint64_t>(pair.first) * 0x9e3779b97f4a7c15U +
                                        static_cast<std::uint64_t>(pair.second));
    }
  };

  std::int64_t added_ = 0;
  std::unordered_map<Pair, Merge, PairHash> merges_;
};

}  // namespace phalanx
