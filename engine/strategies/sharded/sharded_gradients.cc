// SPDX-License-Identifier: Apache-2.0
// ZeRO stage 2 (Rajbhandari et al. 2020, arXiv:1910.02054, section 5.2): a bucket's gradients are reduce-scattered as
// soon as backward has computed the last of them, and then freed. A rank therefore holds 1 / P of the gradients and the
// buckets in flight, also between the backwards of a step that accumulates. Wire: as stage 1, (P - 1) / P of the
// gradients' bytes in each backward and as much of the values' bytes in each step.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/strategies/gradient_hooks.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/sharded/gradient_shards.h"
#include "engine/strategies/sharded/sharded_stages.h"
#include "engine/strategies/sharded/shards.h"

namespace phalanx {
namespace {

class ShardedGradients final : public Strategy, private FreesGradients {
 public:
  explicit ShardedGradients(const StrategyContext& context)
      : group_(context.group), local_gradients_(context.local_gradients) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override {
    values_.clear();
    std::vector<Shards> shards;
    std::vector<Slice> slices;
    for (const auto& all : broadcast_all(parameters, *group_)) {
      const auto& shard = shards.emplace_back(all, group_->size(), cut);
      const auto& own = slices.emplace_back(part(all, shard.begin(group_->rank()), shard.count(group_->rank())));
      values_.push_back({all.values, own.values, shard});
    }
    for (auto& slice : slices) slice.gradients.reset();  // views of the bucket's gradients, which are freed
    gradients_ = std::make_unique<GradientShards>(group_, parameters, shards, local_gradients_);
    hooks_ = std::make_unique<GradientHooks>(parameters, 1, [this](std::size_t bucket) { reduce_if_next(bucket); });
    frozen_.clear();
    for (const auto& bucket : parameters.buckets()) {
      frozen_.push_back(std::ranges::none_of(bucket.parameters, &at::Tensor::requires_grad));
    }
    start();
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].gradients = gradients_->shard(i);
    std::erase_if(slices, [](const Slice& slice) { return slice.values.numel() == 0; });
    return slices;
  }

  void attach_state(const std::vector<StateTensor>&) override {}
  void reset() override {}

  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }
  void after_update(std::int64_t) override { gather_slices(); }
  bool replicas_equal() const override { return true; }

  void gather_slices() override {
    std::vector<Work> works;
    for (const auto& [all, own, shards] : values_) works.push_back(group_->all_gather(all, own, shards.counts()));
    wait_all(works);
  }

  StateDict state() override { return {}; }
  void sum_over_slices(at::Tensor& sums) override { group_->all_reduce(sums, Reduction::kSum).wait(); }
  void finish() override { hooks_.reset(); }
  StrategyExtensions extensions() override { return {.frees_gradients = this}; }

  Metrics metrics() const override {
    return {{"gradient_shard_bytes", static_cast<double>(gradients_->bytes())},
            {"gradient_buffer_bytes", static_cast<double>(gradients_->buffer_bytes())}};
  }

 private:
  struct Values {
    at::Tensor all, own;
    Shards shards;
  };

  void after_backward() override {
    gradients_->complete();
    start();
  }

  void start() {
    ready_ = frozen_;
    next_ = 0;
    if (hooks_) hooks_->start();
  }

  // All ranks reduce buckets in the same order, regardless of the order in which gradients are completed.
  void reduce_if_next(std::size_t bucket) {
    ready_[bucket] = true;
    while (next_ < ready_.size() && ready_[next_]) gradients_->reduce(next_++);
  }

  CommunicatorPtr group_;
  GradientShards::LocalGradients local_gradients_;
  std::vector<Values> values_;  // by bucket
  std::unique_ptr<GradientShards> gradients_;
  std::unique_ptr<GradientHooks> hooks_;
  std::vector<bool> frozen_, ready_;  // by bucket
  std::size_t next_ = 0;              // the next bucket to reduce in this backward
};

}  // namespace

std::unique_ptr<Strategy> make_sharded_gradients(const StrategyContext& context) {
  return std::make_unique<ShardedGradients>(context);
}

}  // namespace phalanx
