// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/collectives/selection/selection_table.h"

namespace phalanx {

/// A SelectionTable resolved for one group. For every operation it holds sorted ranges of sizes, and for each range the
/// candidates that the rules allow, in order. A lookup takes a few nanoseconds. Immutable and thread-safe.
class ResolvedTable {
 public:
  struct Candidate {
    const Algorithm* algorithm = nullptr;  // null: native, which always suits
    int backend = -1;                      // position in `backends`; -1: the group's own

    bool operator==(const Candidate&) const = default;
  };

  /// Resolves the table for a group of `ranks` ranks that is also connected by `backends`. Throws ConfigError if a rule
  /// names another backend.
  ResolvedTable(const SelectionTable& table, int ranks, const std::vector<std::string>& backends);

  /// Returns the candidates in order of preference; the first that suits must be used. If none suits, or the result is
  /// empty, the operation runs natively on the group's own backend.
  std::span<const Candidate> find(Op op, std::int64_t bytes) const {
    for (const Range& range : ranges_[static_cast<std::size_t>(op)]) {
      if (bytes <= range.up_to) return {candidates_.data() + range.begin, candidates_.data() + range.end};
    }
    return {};
  }

 private:
  struct Range {
    std::int64_t up_to;
    std::size_t begin, end;  // range of indices in candidates_
  };

  void add_range(Op op, std::int64_t up_to, const std::vector<std::pair<std::int64_t, Candidate>>& rules);

  std::array<std::vector<Range>, static_cast<std::size_t>(Op::kCustom) + 1> ranges_;
  std::vector<Candidate> candidates_;
};

/// Returns the size that is used to look up a call (see SelectionRule).
std::int64_t selection_bytes(const Call& call);

}  // namespace phalanx
