// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/step_times.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "framework/base/text.h"
#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {
namespace {

constexpr double kEven = 1.1;  // work is balanced if no rank needs more than this times the work of another

using OfPhases = std::array<double, kPhases>;

RankSpread spread(const std::vector<OfPhases>& ranks, const std::function<double(const OfPhases&)>& value) {
  std::vector<double> values(ranks.size());
  std::ranges::transform(ranks, values.begin(), value);
  if (values.empty()) return {};
  const auto [least, most] = std::pair(std::ranges::min_element(values), std::ranges::max_element(values));
  return {.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .least = *least,
          .most = *most,
          .least_rank = static_cast<int>(least - values.begin()),
          .most_rank = static_cast<int>(most - values.begin())};
}

double sum(const OfPhases& phases) { return std::accumulate(phases.begin(), phases.end(), 0.0); }

}  // namespace

RankSpread StepTimes::phase(Phase phase) const {
  return spread(ranks, [phase](const OfPhases& phases) { return phases[static_cast<std::size_t>(phase)]; });
}

RankSpread StepTimes::own_work() const {
  return spread(ranks, [](const OfPhases& phases) {
    double work = 0;
    for (const auto phase : {Phase::kData, Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      work += phases[static_cast<std::size_t>(phase)];
    }
    return work;
  });
}

RankSpread StepTimes::whole() const { return spread(ranks, sum); }

std::string StepTimes::straggler() const {
  if (ranks.size() < 2 || steps == 0) return "there is only one rank, so no rank waits for another";
  const RankSpread work = own_work();
  if (work.most <= work.least * kEven) return "the ranks are balanced: their own work differs by less than a tenth";
  return format_text("rank %d is the straggler: its own work takes %.0f %% longer than that of rank %d", work.most_rank,
                     100 * (work.most / work.least - 1), work.least_rank);
}

StepTimes across_ranks(const PhaseTimes& mine, Communicator& group) {
  const auto ranks = static_cast<std::size_t>(group.size());
  StepTimes times{.steps = mine.steps, .ranks = std::vector<OfPhases>(ranks)};
  at::Tensor own = at::empty({kPhases}, at::kDouble), all = at::empty({group.size(), kPhases}, at::kDouble);
  const auto steps = static_cast<double>(std::max<std::int64_t>(mine.steps, 1));
  std::ranges::transform(mine.seconds, own.data_ptr<double>(), [steps](double seconds) { return seconds / steps; });
  const MeasuredInputs measured;
  group.all_gather(all, own).wait();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::copy_n(all.data_ptr<double>() + rank * kPhases, kPhases, times.ranks[rank].begin());
  }
  return times;
}

}  // namespace phalanx
