// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A wrong result of a rank, which the replica check has found: it was repaired, or it ended the run. The rank notes it
/// in the run's log folder for the launcher, which counts it against the rank's host.
struct WrongResult {
  int rank = 0;
  std::string host{};
  std::string message{};
};

/// Adds a wrong result to the file rank<r>.wrong of `folder`. Never throws: if the file cannot be written, the log of
/// the rank says so, and the launcher does not count the result.
void note_wrong_result(const std::string& folder, const WrongResult& result) noexcept;

/// Returns the wrong results that ranks have noted in `folder`, by rank and then in the order in which they were found,
/// and removes them. Skips lines that cannot be read. A missing folder has no wrong results.
std::vector<WrongResult> take_wrong_results(const std::string& folder);

}  // namespace phalanx
