// Synchronous data parallelism: the mean of all ranks' gradients after backward, one all-reduce per bucket.
// Replicas start equal by a broadcast from rank 0 and stay bitwise equal, because all-reduce gives every rank the same
// bits. Wire: 2 (P - 1) / P of the gradients' bytes per rank and step where the backend moves the minimum.
#include "engine/sync/synchronizer.h"

namespace phalanx {
namespace {

struct AllReduceConfig {
  template <class V>
  void visit(V&) {}
};

class AllReduce final : public Synchronizer {
 public:
  explicit AllReduce(CommunicatorPtr group) : group_(std::move(group)) {}

  std::vector<Slice> attach(const FlatParameters& parameters) override {
    slices_.clear();
    for (const auto& bucket : parameters.buckets()) {
      group_->broadcast(bucket.values, 0).wait();
      slices_.push_back({bucket.values, bucket.gradients});
    }
    return slices_;
  }

  void before_update(std::int64_t) override {
    std::vector<Work> works;
    works.reserve(slices_.size());
    for (auto& slice : slices_) works.push_back(group_->all_reduce(slice.gradients, Reduction::kMean));
    for (auto& work : works) work.wait();
  }

 private:
  CommunicatorPtr group_;
  std::vector<Slice> slices_;
};

const bool registered = Synchronizers::global().add<AllReduceConfig>(
    "all_reduce", "synchronous: mean of the gradients after backward",
    [](const AllReduceConfig&, const CommunicatorPtr& group) { return std::make_unique<AllReduce>(group); });

}  // namespace
}  // namespace phalanx
