// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/plannable.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

void check_plannable(const ExperimentConfig& config) {
  if (config.roles.server > 0 || config.roles.elsewhere()) {
    throw ConfigError("roles: a plan cannot include parameter servers; plan a strategy without them");
  }
  if (training_ranks(config) > 1 && config.strategy.traits().parameter_servers) {
    throw ConfigError("strategy: " + config.strategy.selected() +
                      " exchanges with parameter servers on the ranks, which a plan cannot include; plan a strategy "
                      "without them");
  }
  if (config.train.precision == "fp16") {
    throw ConfigError("train.precision: fp16 skips updates after an overflow, so steps differ; plan bf16 or fp32");
  }
  if (config.determinism == "world_size_invariant") {
    throw ConfigError("determinism: world_size_invariant has collectives of its own; plan with run");
  }
}

void check_plannable(const Strategies::Choice& strategy) {
  const auto traits = strategy.traits();
  if (traits.frees_gradients) return;
  if (traits.remembers_gradients) {
    throw ConfigError("strategy.compression: what it sends depends on the gradients; plan with none");
  }
  if (traits.traffic != StepTraffic::kOther) return;
  auto planned =
      Strategies::global().names_where([](const StrategyTraits& one) { return one.traffic != StepTraffic::kOther; });
  const auto last = std::exchange(planned.back(), "");
  planned.pop_back();
  throw ConfigError("strategy: what " + strategy.selected() + " sends in a step is not planned; plan " +
                    join(planned, ", ") + " or " + last);
}

}  // namespace phalanx
