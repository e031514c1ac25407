// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/diff_runs/digest_files.h"

namespace phalanx {

/// The two recordings of a rank, and how to replay them.
struct ReplayPlan {
  std::vector<std::string> command{};       // of the command replay
  std::array<std::string, 2> recordings{};  // their folders
  int rank = 0;
  std::int64_t until = 0;  // the last step to replay; 0: all
};

/// Findings of replaying a rank in two runs about the first difference between the runs.
struct ReplayFindings {
  std::string operation{};                    // the first operation that differs, with its parameters; empty: none does
  bool compared = false;                      // true if both have been replayed with digests, which were compared
  std::optional<DigestDifference> digests{};  // between the digests of every step; nullopt: none differs
  std::array<std::string, 2> problems{};      // why a recording could not be replayed to the end; empty: it was

  /// Returns true if the replay of a run did something else than its recording.
  bool is_unlike(std::size_t run) const;
};

/// Replays a rank of two runs alone, one after the other, with digests of every step, up to ReplayPlan::until, and
/// compares them. Must be called in the folder in which the runs were started.
ReplayFindings replay_both(const ReplayPlan& plan);

/// Returns the text that replay prints for an operation in its output, or an empty string.
std::string operation_in(const std::string& output);

}  // namespace phalanx
