// SPDX-License-Identifier: Apache-2.0
// Shared parameters without locks (Niu et al. 2011, Hogwild): the ranks of a host share one copy of the parameters, and
// each rank updates it with its own gradients as soon as it has them, while others read and write. Every rank keeps its
// own optimizer state and takes its own step with the full learning rate, so a step of P ranks moves the parameters as
// much as P steps on shares of the batch.
// Elements are written one by one: if two updates happen at the same time, one may be lost. Results differ from run to
// run.
// Wire: nothing. Memory: one copy of the parameters for all ranks.
#include <memory>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Hogwild final : public ReplicatedStrategy {
 public:
  explicit Hogwild(CommunicatorPtr group) : group_(std::move(group)) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    return share_memory(parameters, *group_);
  }

  void attach_state(const std::vector<StateTensor>&) override {}
  void reset() override {}
  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }
  void after_update(std::int64_t) override {}

  // They are equal while no rank writes to them, but a rank may be writing at any time.
  bool replicas_equal() const override { return group_->size() == 1; }

  StateDict state() override { return {}; }

  void finish() override { group_->barrier().wait(); }

 private:
  CommunicatorPtr group_;
};

const bool hogwild_registered = Strategies::global().add<NoFields>(
    "hogwild", "all ranks of a host update one copy of the parameters without locks",
    StrategyTraits{.shared_memory = true, .concurrent_updates = true},
    [](const NoFields&, const StrategyContext& context) { return std::make_unique<Hogwild>(context.group); });

}  // namespace
}  // namespace phalanx
