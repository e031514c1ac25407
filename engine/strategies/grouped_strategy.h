// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/strategies/data_parallel_groups.h"
#include "engine/strategies/strategy.h"

namespace phalanx {

/// Combines one strategy per group of parameters into a single strategy. They are of the same kind, with different
/// ranks, and act one after the other, in the order of the groups. An optional interface is implemented if all of them
/// implement it.
///
/// sum_over_slices() takes one sum per group, over that group's slices.
class GroupedStrategy final : public Strategy,
                              private UpdatesOnServers,
                              private FreesGradients,
                              private ShardsParameters {
 public:
  struct Member {
    DataParallelGroup of;
    std::unique_ptr<Strategy> strategy;
  };

  /// There must be at least one member.
  explicit GroupedStrategy(std::vector<Member> members) : members_(std::move(members)) {}

  /// `parameters` must be the parameters of all groups.
  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override;
  void attach_state(const std::vector<StateTensor>& state) override;
  void reset() override;
  void before_update(std::int64_t step) override;
  std::vector<CommunicatorPtr> gradient_groups() const override;
  void after_update(std::int64_t step) override;
  bool replicas_equal() const override;
  void sum_over_slices(at::Tensor& sums) override;
  void gather_slices() override;
  StateDict state() override;
  void finish() override;
  StrategyExtensions extensions() override;
  Metrics metrics() const override;  // from the first group

 private:
  class MemberOptimizers;

  std::unique_ptr<Optimizer> make_optimizer() override;
  void after_backward() override;
  BlockRunner run_blocks(const std::vector<Block>& blocks) override;
  void with_full_parameters(const std::function<void()>& body) override;
  void unshard() override;

  std::vector<Member> members_;
  std::vector<std::size_t> slices_;  // number of slices of each member
};

}  // namespace phalanx
