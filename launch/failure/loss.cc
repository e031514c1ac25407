// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/loss.h"

#include <algorithm>
#include <utility>

#include "framework/base/text.h"
#include "launch/exit_status.h"

namespace phalanx {

bool is_loss(int rank, int status, const std::optional<Failure>& failure, const std::string& log_folder) {
  if (status == kUsage || status == kExpectationFailed || status == kTooFewRanks) return false;
  if (!training_has_begun(log_folder)) return false;
  return !failure || !failure->secondary || is_noted_as_lost(rank, log_folder);
}

bool is_noted_as_lost(int rank, const std::string& log_folder) {
  const auto lost = lost_ranks(log_folder);
  return std::ranges::find(lost, rank) != lost.end();
}

std::optional<Failure> failure_left_by(int rank, const std::string& log_folder) {
  for (auto& one : read_failures(log_folder)) {
    if (one.rank == rank) return std::move(one);
  }
  return std::nullopt;
}

std::string describe_stop(double lost_after) {
  return "It was stopped for " + format_text("%g", lost_after) + " s (faults.lost_after), and was killed.";
}

}  // namespace phalanx
