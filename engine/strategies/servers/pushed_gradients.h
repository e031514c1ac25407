// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/strategies/servers/server_strategy.h"
#include "engine/strategies/strategy_context.h"
#include "framework/ps/protocol/element_ranges.h"

namespace phalanx {

/// A strategy whose ranks push gradients to parameter servers. The servers update the parameters by a rule that takes
/// optimizer steps; the scale of a push is the current learning rate. A rank trains on the values that it read last,
/// and pushes the mean of its gradients since then. A push excludes parameters for which the rank has no gradient
/// (ps::UpdateInfo::unused). Wire: the parameters' bytes to the servers and back, per rank and exchange.
class PushedGradients final : public ServerStrategy, private UpdatesOnServers {
 public:
  struct Options {
    std::string rule;                            // of the servers, in YAML
    double learning_rate = 0;                    // before the schedule is applied
    std::int64_t every = 1;                      // steps between exchanges
    std::int64_t staleness = ps::kAsynchronous;  // of the tables
    bool synchronous = false;                    // the rule takes one step for the gradients of all ranks
  };

  PushedGradients(const Options& options, const StrategyContext& context);

  void after_update(std::int64_t step) override;
  bool replicas_equal() const override { return options_.synchronous || ServerStrategy::replicas_equal(); }
  StrategyExtensions extensions() override {
    return {.updates_on_servers = this, .keeps_centre = options_.synchronous ? nullptr : this};
  }

 private:
  class PushOptimizer;

  std::unique_ptr<Optimizer> make_optimizer() override;
  void begin(const std::vector<at::Tensor>& values) override;
  StateDict own_state() override;
  void settle() override {}
  void send_rest() override;
  void servers_were_set() override;

  void take(const std::vector<Slice>& slices, const std::set<std::string>& unused, double learning_rate);
  std::vector<ps::ElementRanges> take_unused();

  // The factor that turns the sums into the mean of the gradients since the last push, and how to push it.
  struct Mean {
    double factor;
    ps::Client::PushOptions options;
    std::vector<ps::ElementRanges> unused;  // by bucket
  };
  Mean mean_since_last();

  Options options_;
  double weight_;                 // of this rank's gradients
  std::vector<at::Tensor> sums_;  // of gradients since the last exchange
  std::vector<at::Tensor> used_;  // [segments] int64, by bucket: 1 if the sum has a gradient of that parameter
  at::Tensor progress_;           // [2] double: number of gradients in the sums, and the learning rate of the last
};

}  // namespace phalanx
