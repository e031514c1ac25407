// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/step_times_json.h"

#include <string>

namespace phalanx {
namespace {

nlohmann::ordered_json to_json(const RankSpread& spread) {
  return {{"mean_ms", 1e3 * spread.mean},
          {"least_ms", 1e3 * spread.least},
          {"least_rank", spread.least_rank},
          {"most_ms", 1e3 * spread.most},
          {"most_rank", spread.most_rank}};
}

}  // namespace

nlohmann::ordered_json means_to_json(const StepTimes& times) {
  nlohmann::ordered_json means;
  for (int i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    means[std::string(to_string(phase))] = 1e3 * times.phase(phase).mean;
  }
  return means;
}

nlohmann::ordered_json spreads_to_json(const StepTimes& times) {
  nlohmann::ordered_json phases;
  for (int i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    phases[std::string(to_string(phase))] = to_json(times.phase(phase));
  }
  return {{"steps", times.steps},
          {"phases", phases},
          {"own_work", to_json(times.own_work())},
          {"whole", to_json(times.whole())},
          {"straggler", times.straggler()}};
}

}  // namespace phalanx
