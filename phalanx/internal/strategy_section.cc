// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/strategy_section.h"

#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns the exact strategy that suits replicas whose optimizer updates all parameters on every rank.
std::string suitable_for_replicas(const Communicator& group) {
  if (group.size() == 1) return "single";
  return group.shares_memory() ? "all_reduce" : "overlapped";
}

void refuse_what_needs_a_run(const Strategies::Choice& strategy) {
  const auto traits = strategy.traits();
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("DistributedDataParallel: strategy " + strategy.selected() + " " + why);
  };
  if (traits.servers_update) refuse("updates the parameters on its servers; leave out server_optimizer");
  if (traits.shards_values) refuse("gathers the values of one block of a Phalanx model after the other; use stage 2");
}

}  // namespace

std::string section_text(const std::string& name, const std::map<std::string, std::string>& keys) {
  std::string text = "{name: " + name;
  for (const auto& [key, value] : keys) text += ", " + key + ": " + value;
  return text + "}";
}

Strategies::Choice choose_strategy(const DistributedDataParallelOptions& options, const Communicator& group) {
  std::string name = options.strategy;
  auto keys = options.strategy_options;
  if (name == "auto") {
    if (!keys.empty()) {
      throw ConfigError("DistributedDataParallel: strategy_options belong to one strategy; name it instead of auto");
    }
    name = suitable_for_replicas(group);
  }
  if (options.compression != "none" && name != "single") keys.emplace("compression", options.compression);
  auto strategy =
      config::load_as<Strategies::Choice>("strategy", section_text(name, keys), "DistributedDataParallelOptions");
  refuse_what_needs_a_run(strategy);
  return strategy;
}

}  // namespace phalanx
