// SPDX-License-Identifier: Apache-2.0
// Asynchronous gossip (Lian et al. 2018, Asynchronous Decentralized Parallel SGD; Blot et al. 2016, Gossip training for
// deep learning): every rank updates its own replica with its own gradients. After each step the ranks are paired at
// random, in the same way on all ranks. The two ranks of a pair exchange their values x while they compute the next
// step, and after that step each moves halfway to the other: x_r += (x_p - x_r) / 2, with the exchanged values. For
// values, a rank waits for at most one peer, and only if that peer is more than a step behind. If replicas have
// different weights, the heavier one moves less: both move to their weighted mean. With an odd number of ranks, one has
// no peer. After the last step the replicas become their mean.
//
// With `compression:` both values are rounded before they are sent. Both ranks move by the rounded values, so the mean
// does not change. Compressions that keep a residual cannot be used, because two ranks that meet have no common state
// to which a residual could refer.
// Wire: the parameters' bytes per rank and step, to one peer; half of that with bf16 or fp16, a quarter with int8.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/strategies/initial_values.h"
#include "engine/strategies/parameter_average.h"
#include "engine/strategies/parameter_code.h"
#include "engine/strategies/replicated_strategy.h"
#include "engine/strategies/strategies.h"
#include "framework/base/random.h"
#include "framework/collectives/scalar.h"

namespace phalanx {
namespace {

struct GossipConfig {
  std::int64_t seed = 1;
  std::string compression = "none";

  template <class V>
  void visit(V& v) {
    v("seed", seed, "random seed of the pairing", config::at_least(0));
    v("compression", compression,
      "precision in which parameters are sent; other compressions are for gradients or changes",
      config::one_of(ParameterCode::names()));
  }
};

// Returns the peer of `rank` after `step`, or `rank` itself if it has none. Pairs are neighbours in a random
// permutation of the ranks (Fisher and Yates).
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

class Gossip final : public ReplicatedStrategy {
 public:
  Gossip(const GossipConfig& config, const StrategyContext& context)
      : config_(config),
        group_(context.group),
        code_(config.compression),
        weights_(all_gather(*context.group, context.weight)),
        average_(context.group, Compressors::Choice("none"), context.weight) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    average_.attach(parameters);
    sent_.clear(), received_.clear();
    under_way_ = at::zeros({1}, at::kLong);
    for (const auto& slice : slices_) {
      sent_.push_back(code_.make_message(slice.values));
      received_.push_back(code_.make_message(slice.values));
    }
    return slices_;
  }

  void attach_state(const std::vector<StateTensor>& state) override { state_ = state; }

  // An exchange in flight moves the values by a difference, which is valid for any values.
  void reset() override {}
  void before_update(std::int64_t) override {}
  std::vector<CommunicatorPtr> gradient_groups() const override { return {nullptr}; }

  void after_update(std::int64_t step) override {
    average_with_peer();
    begin_exchange(partner_of(group_->rank(), group_->size(), config_.seed, step));
  }

  bool replicas_equal() const override { return group_->size() == 1; }

  // Waits for the exchange in flight, which has not moved the values yet.
  StateDict state() override {
    wait_all(works_);
    works_.clear();
    StateDict all{{"under_way", under_way_}};
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      all.push_back({"sent/" + std::to_string(i), sent_[i]});
      all.push_back({"received/" + std::to_string(i), received_[i]});
    }
    return all;
  }

  void finish() override {
    average_with_peer();
    average_.average();
    for (const auto& state : state_) {
      if (state.kind == kMovingAverage) average_.average(state.values);
    }
  }

 private:
  void begin_exchange(int partner) {
    if (partner == group_->rank()) return;
    under_way_.fill_(partner + 1);
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      code_.write(slices_[i].values, sent_[i]);
      works_.push_back(group_->recv(received_[i], partner));
      works_.push_back(group_->send(sent_[i], partner));
    }
  }

  void average_with_peer() {
    const at::NoGradGuard no_grad;
    wait_all(works_);
    works_.clear();
    const auto partner = under_way_.item<std::int64_t>() - 1;
    if (partner < 0) return;
    under_way_.zero_();
    const double theirs = weights_.at(partner), share = theirs / (weights_[group_->rank()] + theirs);
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const at::Tensor& values = slices_[i].values;
      values.add_(code_.read(received_[i], values).sub(code_.read(sent_[i], values)), share);
    }
  }

  GossipConfig config_;
  CommunicatorPtr group_;
  ParameterCode code_;
  std::vector<double> weights_;  // weights of all ranks' replicas
  ParameterAverage average_;
  std::vector<StateTensor> state_;  // of the optimizer
  std::vector<Slice> slices_;
  std::vector<at::Tensor> sent_, received_;  // messages, by slice
  std::vector<Work> works_;                  // of the exchange in flight
  at::Tensor under_way_;                     // [1]: the peer's rank + 1, or 0 if there is no exchange
};

const bool gossip_registered = Strategies::global().add<GossipConfig>(
    "gossip", "asynchronous: after each step, every rank averages with one random peer",
    StrategyTraits{.inter_level = true}, [](const GossipConfig& config, const StrategyContext& context) {
      return std::make_unique<Gossip>(config, context);
    });

}  // namespace
}  // namespace phalanx
