// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism with communication during backward (Li et al. 2020, PyTorch Distributed, section 3.2.3).
// The mean of a bucket over all ranks is launched as soon as backward has computed its last gradient, while backward
// goes on with earlier layers. All ranks launch buckets in the same order, regardless of the order in which gradients
// are completed. Buckets that lack a gradient, because the loss does not depend on a parameter, are launched after
// backward. The result has the same bits as all_reduce. The overlap needs a progress thread: without one, all
// communication happens while it is waited for.
// Wire: as all_reduce.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/strategies/gradient_group.h"
#include "engine/strategies/gradient_hooks.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"

namespace phalanx {
namespace {

class Overlapped final : public GradientStrategy {
 public:
  Overlapped(const GradientConfig& config, const StrategyContext& context)
      : group_(context.group),
        backwards_(context.backwards),
        accumulates_(context.accumulates),
        local_gradients_(context.local_gradients),
        gradients_(group_, config.compression) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    gradients_.attach(parameters);
    hooks_ = std::make_unique<GradientHooks>(
        parameters, backwards_, [this](std::size_t bucket) { launch_if_next(bucket); }, accumulates_);
    start();
    return slices_;
  }

  void before_update(std::int64_t) override {
    while (works_.size() < slices_.size()) launch_next();
    wait_all(works_);
    start();
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

  void finish() override { hooks_.reset(); }

  StateDict state() override { return gradients_.state(); }

  Metrics metrics() const override { return gradients_.metrics(); }

 private:
  void start() {
    works_.clear();
    ready_.assign(slices_.size(), false);
    hooks_->start();
  }

  void launch_if_next(std::size_t bucket) {
    ready_[bucket] = true;
    while (works_.size() < slices_.size() && ready_[works_.size()]) launch_next();
  }

  void launch_next() {
    const at::Tensor& gradients = slices_[works_.size()].gradients;
    if (local_gradients_) local_gradients_(gradients);
    works_.push_back(gradients_.all_reduce_mean(gradients));
  }

  CommunicatorPtr group_;
  std::int64_t backwards_;
  std::shared_ptr<const bool> accumulates_;
  std::function<void(const at::Tensor&)> local_gradients_;  // may be null
  GradientGroup gradients_;
  std::vector<Slice> slices_;  // the buckets
  std::unique_ptr<GradientHooks> hooks_;
  std::vector<bool> ready_;  // of this step
  std::vector<Work> works_;  // of the first buckets, the launched ones
};

StrategyTraits overlapped_traits(const GradientConfig& config) {
  const bool compresses = phalanx::compresses(config.compression);
  return {.reduces_gradients = true,
          .remembers_gradients = compresses,
          .overlaps_backward = true,
          .intra_level = true,
          .in_graph = !compresses,
          .traffic = compresses ? StepTraffic::kOther : StepTraffic::kAllReduce};
}

const bool overlapped_registered = Strategies::global().add<GradientConfig>(
    "overlapped", "synchronous: gradients are all-reduced during backward", overlapped_traits,
    [](const GradientConfig& config, const StrategyContext& context) {
      return std::make_unique<Overlapped>(config, context);
    });

}  // namespace
}  // namespace phalanx
