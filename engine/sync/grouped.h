// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/sync/replica_groups.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {

/// Combines one strategy per group of parameters into a single strategy. They act one after the other, in the order of
/// the groups.
///
/// sum_over_slices() takes one sum per group, over that group's slices.
class GroupedSynchronizer final : public Synchronizer {
 public:
  struct Member {
    ReplicaGroup of;
    std::unique_ptr<Synchronizer> strategy;
  };

  explicit GroupedSynchronizer(std::vector<Member> members) : members_(std::move(members)) {}

  std::unique_ptr<Optimizer> make_optimizer() override;

  /// `parameters` must be the parameters of all groups.
  std::vector<Slice> attach(const FlatParameters& parameters, Cut cut) override;
  void attach_state(const std::vector<StateTensor>& state) override;
  void begin_anew() override;
  void after_backward() override;
  BlockRunner run_blocks(const std::vector<Block>& blocks) override;
  void with_values(const std::function<void()>& body) override;
  void keep_values() override;
  void before_update(std::int64_t step) override;
  std::vector<CommunicatorPtr> gradient_groups() const override;
  void after_update(std::int64_t step) override;
  bool replicas_equal() const override;
  void sum_over_slices(at::Tensor& sums) override;
  void share_values() override;
  StateDict state() override;
  void finish() override;
  Figures figures() const override;  // from the first group

 private:
  class Takers;

  std::vector<Member> members_;
  std::vector<std::size_t> slices_;  // number of slices of each member
};

}  // namespace phalanx
