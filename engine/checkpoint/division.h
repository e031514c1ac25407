// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace phalanx {

/// Elements [offset, offset + count) of parameter number `parameter`, in the order in which they lie in memory.
struct ParameterRange {
  std::int64_t parameter = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  auto operator<=>(const ParameterRange&) const = default;
};

/// The rank that writes each range into a checkpoint.
using Division = std::map<ParameterRange, int>;

/// Gives every range to one of the ranks that hold it (`held[r]`: the ranges of rank r), the largest ranges first, each
/// to the one with the fewest elements so far: replicated state is shared out evenly, sharded state stays where it is.
/// A pure function, so that ranks agree without asking.
///
/// `sizes`: elements of each parameter. Throws Error unless the ranges of each parameter are all of it, once.
Division divide(const std::vector<std::vector<ParameterRange>>& held, const std::vector<std::int64_t>& sizes);

}  // namespace phalanx
