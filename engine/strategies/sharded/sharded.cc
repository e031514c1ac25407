// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism with a sharded update (ZeRO stage 1, Rajbhandari et al. 2020, section 5.1). Every rank
// gets the mean gradients of its part of each bucket, keeps optimizer state only for that part and updates it, and then
// all ranks gather the new values. The optimizer state takes 1 / P of the memory and the update 1 / P of the time.
// Wire: 2 (P - 1) / P of the gradients' bytes per rank and step, as all_reduce: a reduce-scatter and an all-gather.
// With `compression:`, gradients are all-reduced in compressed form, as in all_reduce, and values are gathered exactly.
// With `one_copy:`, there is no all-gather: the ranks of a host write their parts into one copy of the parameters.
// Stages 2 and 3 shard gradients and values too (sharded_stages.h).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/strategies/gradient_group.h"
#include "engine/strategies/initial_values.h"
#include "engine/strategies/sharded/sharded_stages.h"
#include "engine/strategies/sharded/shards.h"
#include "engine/strategies/strategies.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ShardedConfig {
  Compressors::Choice compression{"none"};
  bool one_copy = false;
  std::int64_t stage = 1;
  bool reshard_after_forward = true;

  template <class V>
  void visit(V& v) {
    v("compression", compression, "gradient compression");
    v("one_copy", one_copy, "ranks of one host share one copy of the parameters, so there is nothing to gather");
    v("stage", stage, "what is divided among ranks (ZeRO): 1 optimizer state, 2 also gradients, 3 also values",
      config::between(1, 3));
    v("reshard_after_forward", reshard_after_forward,
      "with stage 3: values are released after forward and gathered again for backward");
  }
};

class Sharded final : public Strategy {
 public:
  Sharded(const ShardedConfig& config, const StrategyContext& context)
      : group_(context.group), gradients_(context.group, config.compression), one_copy_(config.one_copy) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override {
    buckets_.clear();
    std::vector<Slice> slices;
    for (const auto& all : one_copy_ ? share_memory(parameters, *group_) : broadcast_all(parameters, *group_)) {
      const auto& own = buckets_.emplace_back(all, *group_, cut, group_->size()).own();
      if (own.values.numel() > 0) slices.push_back(own);
    }
    gradients_.attach(parameters);
    return slices;
  }

  // The state on each rank belongs to different elements, so nothing has to be synchronized.
  void attach_state(const std::vector<StateTensor>&) override {}
  void reset() override {}

  void before_update(std::int64_t) override {
    run_all([this](const ShardedBucket& bucket) {
      return gradients_.compresses() ? gradients_.all_reduce_mean(bucket.all().gradients)
                                     : bucket.reduce_gradients(*group_);
    });
    for (const auto& bucket : buckets_) bucket.zero_other_gradients();
  }

  std::vector<CommunicatorPtr> gradient_groups() const override { return {group_}; }

  void after_update(std::int64_t) override { gather_slices(); }

  bool replicas_equal() const override { return true; }

  // With one copy, no rank reads what another one is writing: a rank writes only after it got its gradients, to which
  // all other ranks contribute after their backward.
  void gather_slices() override {
    if (one_copy_) return group_->barrier().wait();
    run_all([this](const ShardedBucket& bucket) { return bucket.gather_values(*group_); });
  }

  StateDict state() override { return gradients_.state(); }

  void sum_over_slices(at::Tensor& sums) override { group_->all_reduce(sums, Reduction::kSum).wait(); }

  void finish() override {}

  Metrics metrics() const override { return gradients_.metrics(); }

 private:
  template <class Launch>
  void run_all(const Launch& launch) {
    std::vector<Work> works;
    for (const auto& bucket : buckets_) works.push_back(launch(bucket));
    wait_all(works);
  }

  CommunicatorPtr group_;
  GradientGroup gradients_;
  bool one_copy_;
  std::vector<ShardedBucket> buckets_;
};

// Stages above 1 free the gradients, which compression needs in place. Stage 3 also frees the values, so there is
// nothing to share in one copy.
void check_stage(const ShardedConfig& config) {
  const auto refuse = [&](const char* key) {
    throw ConfigError(std::string("strategy.") + key + ": cannot be combined with stage: " +
                      std::to_string(config.stage) + "; remove it, or use stage: 1");
  };
  if (config.stage > 1 && config.one_copy) refuse("one_copy");
  if (config.stage > 1 && compresses(config.compression)) refuse("compression");
  if (config.stage < 3 && !config.reshard_after_forward) {
    throw ConfigError("strategy.reshard_after_forward: is for stage: 3 only; remove it");
  }
}

std::unique_ptr<Strategy> make(const ShardedConfig& config, const StrategyContext& context) {
  check_stage(config);
  if (config.stage == 1) return std::make_unique<Sharded>(config, context);
  return config.stage == 2 ? make_sharded_gradients(context)
                           : make_sharded_parameters(context, config.reshard_after_forward);
}

StepTraffic sharded_traffic(const ShardedConfig& config) {
  if (config.stage > 1 || compresses(config.compression)) return StepTraffic::kOther;
  return config.one_copy ? StepTraffic::kReduceScatterSharedCopy : StepTraffic::kReduceScatterAllGather;
}

StrategyTraits sharded_traits(const ShardedConfig& config) {
  return {.reduces_gradients = true,
          .remembers_gradients = compresses(config.compression),
          .shared_memory = config.one_copy,
          .shared_memory_key = "one_copy",
          .overlaps_backward = config.stage > 1,
          .shards_update = true,
          .frees_gradients = config.stage > 1,
          .shards_values = config.stage == 3,
          .intra_level = config.stage == 1,
          .traffic = sharded_traffic(config)};
}

const bool sharded_registered = Strategies::global().add<ShardedConfig>(
    "sharded", "synchronous: every rank updates its shard of the parameters (ZeRO stages 1 to 3)", sharded_traits,
    make);

}  // namespace
}  // namespace phalanx
