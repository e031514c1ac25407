// Synchronous data parallelism with the update shared out (ZeRO stage 1, Rajbhandari et al. 2020, section 5.1): every
// rank gets the mean gradients of its own part of each bucket, keeps optimizer state for that part alone, updates it,
// and all gather the new values. An optimizer's state takes 1 / P of the memory and its update 1 / P of the time.
// Wire: 2 (P - 1) / P of the gradients' bytes per rank and step, as all_reduce: a reduce-scatter and an all-gather.
// With `compression:` gradients are reduced as in all_reduce, compressed, and values gathered as they are. With
// `one_copy:` there is no all-gather: the ranks of a host write their parts into one copy of the parameters.
#include <memory>
#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/initial_values.h"
#include "engine/sync/shards.h"
#include "engine/sync/synchronizers.h"

namespace phalanx {
namespace {

struct ShardedConfig {
  Compressors::Choice compression{"none"};
  bool one_copy = false;

  template <class V>
  void visit(V& v) {
    v("compression", compression, "gradient compression");
    v("one_copy", one_copy, "ranks of one host share one copy of the parameters, so there is nothing to gather");
  }
};

class Sharded final : public Synchronizer {
 public:
  Sharded(const ShardedConfig& config, const SyncContext& context)
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

  // Another rank's state is of other elements.
  void attach_state(const std::vector<StateTensor>&) override {}
  void begin_anew() override {}

  void before_update(std::int64_t) override {
    run_all([this](const ShardedBucket& bucket) {
      return gradients_.compresses() ? gradients_.all_reduce_mean(bucket.all().gradients)
                                     : bucket.reduce_gradients(*group_);
    });
    for (const auto& bucket : buckets_) bucket.zero_other_gradients();
  }

  void after_update(std::int64_t) override { share_values(); }

  bool replicas_equal() const override { return true; }

  // Of one copy, nobody reads what another rank is writing: a rank writes after it got its gradients, to which all
  // others have contributed when their backward was over.
  void share_values() override {
    if (one_copy_) return group_->barrier().wait();
    run_all([this](const ShardedBucket& bucket) { return bucket.gather_values(*group_); });
  }

  StateDict state() override { return gradients_.state(); }

  void sum_over_slices(at::Tensor& sums) override { group_->all_reduce(sums, Reduction::kSum).wait(); }

  void finish() override {}

  Figures figures() const override { return gradients_.figures(); }

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

StrategyTraits traits(const ShardedConfig& config) {
  return {.reduces_gradients = true,
          .remembers_gradients = compresses(config.compression),
          .shared_memory = config.one_copy,
          .shared_memory_key = "one_copy",
          .shards_update = true,
          .intra_level = true};
}

const bool registered = Synchronizers::global().add<ShardedConfig>(
    "sharded", "synchronous: every rank updates its shard of the parameters (ZeRO stage 1)", traits,
    [](const ShardedConfig& config, const SyncContext& context) { return std::make_unique<Sharded>(config, context); });

}  // namespace
}  // namespace phalanx
