// Asynchronous gossip (Lian et al. 2018, Asynchronous Decentralized Parallel SGD; Blot et al. 2016, Gossip training for
// deep learning): every rank updates its own replica with its own gradients. After each step the ranks are matched in
// pairs, anew and at random but alike on all ranks; the two exchange their values x while the next step computes, and
// after that step each moves halfway to the other: x_r += (x_p - x_r) / 2, with the values that were exchanged. Nobody
// waits for more than one peer, nor for that one longer than it is a step behind. With an odd number of ranks one sits
// out. After the last step the replicas become their mean.
// Wire: the parameters' bytes per rank and step, to one peer.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/sync/parameter_average.h"
#include "engine/sync/synchronizer.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct GossipConfig {
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("seed", seed, "of who meets whom", config::at_least(0));
  }
};

// Whom `rank` meets after `step`; itself: nobody. A random order of the ranks (Fisher and Yates), two by two.
int partner_of(int rank, int size, std::int64_t seed, std::int64_t step) {
  std::vector<int> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t state = mix(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(step));
  for (int i = size - 1; i > 0; --i) {
    state = mix(state, static_cast<std::uint64_t>(i));
    std::swap(order[i], order[state % static_cast<std::uint64_t>(i + 1)]);
  }
  const auto place = std::ranges::find(order, rank) - order.begin(), other = place ^ 1;
  return other < size ? order[other] : rank;
}

class Gossip final : public Synchronizer {
 public:
  Gossip(const GossipConfig& config, const Replicas& replicas)
      : config_(config), group_(replicas.group), average_(replicas.group, Compressors::Choice("none")) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    average_.attach(parameters);
    sent_.clear(), received_.clear();
    for (const auto& slice : slices_) {
      sent_.push_back(at::empty_like(slice.values));
      received_.push_back(at::empty_like(slice.values));
    }
    return slices_;
  }

  void after_update(std::int64_t step) override {
    meet_halfway();
    begin_exchange(partner_of(group_->rank(), group_->size(), config_.seed, step));
  }

  bool replicas_equal() const override { return group_->size() == 1; }

  void finish() override {
    meet_halfway();
    average_.average();
  }

 private:
  void begin_exchange(int partner) {
    if (partner == group_->rank()) return;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      sent_[i].copy_(slices_[i].values);
      works_.push_back(group_->recv(received_[i], partner));
      works_.push_back(group_->send(sent_[i], partner));
    }
  }

  void meet_halfway() {
    const at::NoGradGuard no_grad;
    if (works_.empty()) return;
    wait_all(works_);
    works_.clear();
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      slices_[i].values.add_(received_[i].sub_(sent_[i]), 0.5);
    }
  }

  GossipConfig config_;
  CommunicatorPtr group_;
  ParameterAverage average_;
  std::vector<Slice> slices_;
  std::vector<at::Tensor> sent_, received_;
  std::vector<Work> works_;  // of the exchange under way
};

const bool registered = Synchronizers::global().add<GossipConfig>(
    "gossip", "every rank for itself; after each step halfway to one peer, a step late",
    [](const GossipConfig& config, const Replicas& replicas) { return std::make_unique<Gossip>(config, replicas); });

}  // namespace
}  // namespace phalanx
