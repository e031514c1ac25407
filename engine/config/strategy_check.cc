// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

// Returns the names of the backends whose ranks share memory: all of them, or at least those of each host.
std::string backends_that_share(bool all) {
  const auto share = [&](const BackendTraits& traits) {
    return traits.shared == BackendTraits::Memory::kAll ||
           (!all && traits.shared == BackendTraits::Memory::kWithinHosts);
  };
  return join(Backends::global().names_where(share), " or ");
}

}  // namespace

void check_shared_memory(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto traits = config.strategy.traits();
  const auto& launch = config.launch;
  const std::string key = "strategy" + (traits.shared_memory_key.empty() ? "" : "." + traits.shared_memory_key);
  const std::string who = traits.shared_memory_key.empty() ? config.strategy.selected() + " " : "";
  const bool by_messages =
      config.backend != "auto" && backend_traits(config.backend).shared == BackendTraits::Memory::kNone;
  const bool wanted = traits.shared_memory || traits.shared_memory_in_hosts;
  refuse_if(problems, wanted && by_messages && launch.ranks > 1, key.c_str(),
            who + "needs ranks that share memory, but the ranks of backend " + config.backend +
                " do not; use backend: " + backends_that_share(traits.shared_memory));
  refuse_if(problems, traits.shared_memory && launch.hosts.size() > 1, key.c_str(),
            who + "needs ranks that share memory, but launch.hosts names " + std::to_string(launch.hosts.size()) +
                " hosts; use one of them, or another strategy");
}

void check_strategy(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& train = config.train;
  const auto traits = config.strategy.traits();
  const std::string& strategy = config.strategy.selected();
  refuse_if(problems, train.gradients == "sum" && !traits.reduces_gradients, "train.gradients",
            "sum needs gradients that are reduced in every step, which " + strategy + " does not do; use one of " +
                strategies_where(&StrategyTraits::reduces_gradients));
  const auto text = [](const auto& optimizer) { return config::dump_as("optimizer", optimizer); };
  refuse_if(problems, traits.servers_update && text(config.optimizer) != text(ExperimentConfig{}.optimizer),
            "optimizer",
            "remove it: with this strategy the servers update the parameters, as the strategy section specifies");
  refuse_if(problems, traits.servers_update && !config.parameter_groups.empty(), "parameter_groups",
            "servers that update the parameters do not know their names; remove it, or let the ranks update them");
  refuse_if(problems, train.precision == "fp16" && traits.remembers_gradients, "train.precision",
            "fp16 cannot be combined with compressed gradients, whose residual would keep an overflow forever; use "
            "bf16, or no compression");
  refuse_if(
      problems, train.ema_decay > 0 && traits.concurrent_updates, "train.ema_decay",
      "cannot be combined with strategy " + strategy + ", whose ranks would write averages into the shared parameters");
}

void check_shards(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (!config.strategy.traits().frees_gradients) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with strategy.stage above 1");
  };
  refuse(config.train.data_parallel > 1, "train.data_parallel",
         "must be 1, since its threads add up gradients after backward, when these are already freed,");
  refuse(!config.turns.empty(), "turns", "skip the gradients of some parameters and cannot be combined");
}

}  // namespace phalanx
