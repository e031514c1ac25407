// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace phalanx::bench_train {

/// Of a step of a system in a round.
struct StepTime {
  double step_ms = 0;
  double backward_ms = 0;
  double busy_ms = 0;  // CPU time of the machine, the kernel's included, divided by the ranks
};

/// What a step gains where communication overlaps with backward, by what it could gain. Medians over the rounds.
struct HiddenShare {
  /// Of all that communication costs after backward, or of what backward takes in the limit, whichever is less.
  double of_communication = 0;
  /// Of that part of its cost in which a rank waits, not computes: CPU time of communication cannot be hidden by a rank
  /// that has one core. Absent where ranks do not wait more than in the limit, and where they have more cores.
  std::optional<double> of_waiting{};
};

/// What communication costs is what a step of `after`, which communicates after backward, takes longer than one of
/// `limit`, where nothing is sent; all three have done the same rounds. Absent where it costs nothing in any.
std::optional<HiddenShare> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                        const std::vector<StepTime>& limit);

}  // namespace phalanx::bench_train
