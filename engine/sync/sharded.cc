// Synchronous data parallelism with the update shared out (ZeRO stage 1, Rajbhandari et al. 2020, section 5.1): every
// rank gets the mean gradients of its own part of each bucket, keeps optimizer state for that part alone, updates it,
// and all gather the new values. An optimizer's state takes 1 / P of the memory and its update 1 / P of the time.
// Wire: 2 (P - 1) / P of the gradients' bytes per rank and step, as all_reduce: a reduce-scatter and an all-gather.
// With `compression:` gradients are reduced as in all_reduce, compressed, and values gathered as they are.
#include <memory>
#include <vector>

#include "engine/sync/gradient_group.h"
#include "engine/sync/shards.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {
namespace {

class Sharded final : public Synchronizer {
 public:
  Sharded(const GradientConfig& config, const Replicas& replicas)
      : group_(replicas.group), gradients_(replicas.group, config.compression) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override {
    buckets_.clear();
    std::vector<Slice> slices;
    for (const auto& all : broadcast_all(parameters, *group_)) {
      Shards shards(all, group_->size(), cut);
      Slice own = part(all, shards.begin(group_->rank()), shards.count(group_->rank()));
      if (own.values.numel() > 0) slices.push_back(own);
      buckets_.push_back({all, own, std::move(shards)});
    }
    gradients_.attach(parameters);
    return slices;
  }

  void before_update(std::int64_t) override {
    run_all([this](const Bucket& bucket) {
      return gradients_.compresses() ? gradients_.all_reduce_mean(bucket.all.gradients)
                                     : group_->reduce_scatter(bucket.own.gradients, bucket.all.gradients,
                                                              Reduction::kMean, bucket.shards.counts());
    });
    for (const auto& bucket : buckets_) zero_others(bucket);
  }

  void after_update(std::int64_t) override {
    run_all([this](const Bucket& bucket) {
      return group_->all_gather(bucket.all.values, bucket.own.values, bucket.shards.counts());
    });
  }

  void sum_over_slices(at::Tensor& sums) override { group_->all_reduce(sums, Reduction::kSum).wait(); }

  Figures figures() const override { return gradients_.figures(); }

 private:
  struct Bucket {
    Slice all, own;
    Shards shards;
  };

  template <class Launch>
  void run_all(const Launch& launch) {
    std::vector<Work> works;
    for (const auto& bucket : buckets_) works.push_back(launch(bucket));
    wait_all(works);
  }

  // The optimizer zeroes what it has used; the next backward adds to the others' parts too.
  void zero_others(const Bucket& bucket) const {
    const auto begin = bucket.shards.begin(group_->rank()), end = begin + bucket.shards.count(group_->rank());
    bucket.all.gradients.narrow(0, 0, begin).zero_();
    bucket.all.gradients.narrow(0, end, bucket.all.gradients.numel() - end).zero_();
  }

  CommunicatorPtr group_;
  GradientGroup gradients_;
  std::vector<Bucket> buckets_;
};

const bool registered = Synchronizers::global().add<GradientConfig>(
    "sharded", "synchronous: every rank updates its share of the parameters (ZeRO stage 1)",
    [](const GradientConfig& config, const Replicas& replicas) { return std::make_unique<Sharded>(config, replicas); });

}  // namespace
}  // namespace phalanx
