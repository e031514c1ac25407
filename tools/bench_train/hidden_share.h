#pragma once

#include <optional>
#include <vector>

namespace phalanx::bench_train {

/// Of a step of a system in a round.
struct StepTime {
  double step_ms = 0;
  double backward_ms = 0;
};

/// Which share of the communication that backward could hide is hidden where it overlaps with backward: the time that a
/// step gains over one that communicates after backward, by what communication costs there (more than in the limit,
/// where nothing is sent) or backward takes in the limit, whichever is less. Median over the rounds, which all three
/// have done; absent where communication costs nothing in any.
std::optional<double> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                   const std::vector<StepTime>& limit);

}  // namespace phalanx::bench_train
