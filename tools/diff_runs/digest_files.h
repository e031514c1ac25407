// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

/// A line of a file of digests (StepDigests).
struct DigestLine {
  std::int64_t step = 0;
  std::string phase;
  std::string digest;
  std::string tensor;
};

/// Reads the digests of a run by rank. A last line that is not complete is ignored. Throws DataError with file and line
/// for a line that is malformed, and ConfigError if the run has no digests.
std::map<int, std::vector<DigestLine>> read_digests(const std::string& run);

/// The first difference between the digests of two runs.
struct DigestDifference {
  std::int64_t step = 0;
  std::string phase{};
  int rank = 0;
  std::string tensor{};               // the first one
  std::vector<std::string> others{};  // further tensors of the rank that differ in this phase
  std::vector<int> other_ranks{};     // further ranks that differ in this phase
};

/// Compares the digests of the ranks and steps that both runs have. Phases are compared in their order in a step, and
/// ranks in ascending order. `steps` returns the number of steps that were compared.
std::optional<DigestDifference> compare(const std::map<int, std::vector<DigestLine>>& first,
                                        const std::map<int, std::vector<DigestLine>>& second, std::int64_t& steps);

}  // namespace phalanx
