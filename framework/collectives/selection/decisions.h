// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/collectives/selection/table.h"

namespace phalanx {

/// What a SelectionTable comes to for one group: for every operation its sizes, sorted, and for each range of sizes the
/// ways that its rules allow, in their order. Finding them takes some nanoseconds. Immutable; thread-safe.
class Decisions {
 public:
  struct Way {
    const Algorithm* algorithm = nullptr;  // null: native, which always suits
    int backend = -1;                      // position in `backends`; -1: the group's own

    bool operator==(const Way&) const = default;
  };

  /// For a group of `ranks` ranks that `backends` connect too. Throws ConfigError for a rule that names another one.
  Decisions(const SelectionTable& table, int ranks, const std::vector<std::string>& backends);

  /// The first that suits is to be taken; where none does, or there are none, native on the group's own backend.
  std::span<const Way> find(Op op, std::int64_t bytes) const {
    for (const Range& range : ranges_[static_cast<std::size_t>(op)]) {
      if (bytes <= range.up_to) return {ways_.data() + range.begin, ways_.data() + range.end};
    }
    return {};
  }

 private:
  struct Range {
    std::int64_t up_to;
    std::size_t begin, end;  // in ways_
  };

  void add_range(Op op, std::int64_t up_to, const std::vector<std::pair<std::int64_t, Way>>& rules);

  std::array<std::vector<Range>, static_cast<std::size_t>(Op::kCustom) + 1> ranges_;
  std::vector<Way> ways_;
};

/// The size by which a call is looked up (see SelectionRule).
std::int64_t selection_bytes(const Call& call);

}  // namespace phalanx
