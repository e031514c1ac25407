// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism with communication under backward (Li et al. 2020, PyTorch Distributed, section 3.2.3):
// a bucket's mean over all ranks is launched as soon as backward has made its last gradient, while it goes on with the
// layers before. Buckets are launched in one order on all ranks, however their gradients come; those that lack a
// gradient, because the loss does not depend on a parameter, follow after backward. Which gradients, and so every bit
// of the result, are those of all_reduce. It takes a progress thread: without one, all happens where it is waited for.
// Wire: as all_reduce.
#include <memory>
#include <utility>
#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/gradient_hooks.h"
#include "engine/sync/initial_values.h"
#include "engine/sync/replicated_synchronizer.h"
#include "engine/sync/synchronizers.h"

namespace phalanx {
namespace {

class Overlapped final : public GradientSynchronizer {
 public:
  Overlapped(const GradientConfig& config, const SyncContext& context)
      : group_(context.group), backwards_(context.backwards), gradients_(group_, config.compression) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    gradients_.attach(parameters);
    hooks_ =
        std::make_unique<GradientHooks>(parameters, backwards_, [this](std::size_t bucket) { launch_if_next(bucket); });
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

  Figures figures() const override { return gradients_.figures(); }

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

  void launch_next() { works_.push_back(gradients_.all_reduce_mean(slices_[works_.size()].gradients)); }

  CommunicatorPtr group_;
  std::int64_t backwards_;
  GradientGroup gradients_;
  std::vector<Slice> slices_;  // the buckets
  std::unique_ptr<GradientHooks> hooks_;
  std::vector<bool> ready_;  // of this step
  std::vector<Work> works_;  // of the first buckets, which are launched
};

StrategyTraits overlapped_traits(const GradientConfig& config) {
  return {.reduces_gradients = true,
          .remembers_gradients = compresses(config.compression),
          .overlaps_backward = true,
          .intra_level = true};
}

const bool overlapped_registered = Synchronizers::global().add<GradientConfig>(
    "overlapped", "synchronous: gradients are all-reduced during backward", overlapped_traits,
    [](const GradientConfig& config, const SyncContext& context) {
      return std::make_unique<Overlapped>(config, context);
    });

}  // namespace
}  // namespace phalanx
