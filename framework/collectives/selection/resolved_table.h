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

  /// A group whose operations are looked up.
  struct Group {
    int ranks = 1;
    Scope scope = Scope::kHost;
  };

  /// Resolves the table for a group that is also connected by `backends`. Throws ConfigError if a rule names another
  /// backend.
  ResolvedTable(const SelectionTable& table, Group group, const std::vector<std::string>& backends);

  /// Returns the candidates in order of preference; the first that suits must be used. If none suits, or the result is
  /// empty, the operation runs natively on the group's own backend.
  std::span<const Candidate> find(Op op, std::int64_t bytes, c10::DeviceType device = c10::kCPU) const {
    for (const Range& range : ranges_[device == c10::kCPU ? 0 : 1][static_cast<std::size_t>(op)]) {
      if (bytes <= range.up_to) return {candidates_.data() + range.begin, candidates_.data() + range.end};
    }
    return {};
  }

 private:
  struct Range {
    std::int64_t up_to;
    std::size_t begin, end;  // range of indices in candidates_
  };

  using Ranges = std::array<std::vector<Range>, static_cast<std::size_t>(Op::kCustom) + 1>;
  using Rules = std::vector<std::pair<std::int64_t, Candidate>>;  // with the largest size of each

  Range add_range(std::int64_t up_to, const Rules& rules);

  std::array<Ranges, 2> ranges_;  // for tensors on the CPU and on devices
  std::vector<Candidate> candidates_;
};

/// Returns the size that is used to look up a call (see SelectionRule).
std::int64_t selection_bytes(const Call& call);

}  // namespace phalanx
