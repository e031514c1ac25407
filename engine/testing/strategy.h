// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/strategies/strategies.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/comm/decorator.h"

// Helpers for tests of strategies: strategies in the form that configs use, and a small problem that differs by rank.
namespace phalanx::testing {

inline Strategies::Choice load_strategy(const std::string& yaml) {
  return config::load_as<Strategies::Choice>("strategy", yaml, "test.yaml");
}

inline std::unique_ptr<Strategy> make_strategy(const std::string& strategy, const CommunicatorPtr& group,
                                               std::int64_t backwards = 1) {
  return make_strategy(load_strategy(strategy), {Mesh(group), group, backwards});
}

/// A group that reports that its ranks share no memory.
class WithoutSharedMemory final : public Decorator {
 public:
  using Decorator::Decorator;
  bool shares_memory() const override { return false; }

 private:
  CommunicatorPtr wrap(CommunicatorPtr child) override {
    return std::make_shared<WithoutSharedMemory>(std::move(child));
  }
};

inline constexpr std::int64_t kBucketBytes = 20 * sizeof(float);

/// Returns parameters for 3 buckets of kBucketBytes. Every value is the rank, so replicas start different.
inline std::vector<at::Tensor> make_parameters(int rank) {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : {7, 30, 1, 20}) {
    parameters.push_back(at::full({size}, static_cast<float>(rank)).requires_grad_());
  }
  return parameters;
}

/// Returns the tensors of all ranks, [P, n].
inline at::Tensor gather(const at::Tensor& own, Communicator& group) {
  const at::Tensor all = at::zeros({group.size(), own.numel()}, own.options());
  group.all_gather(all, own).wait();
  return all;
}

constexpr std::int64_t kElements = 48;
constexpr double kRate = 0.1;

/// Returns a rank's gradient at its own values. Each rank pulls towards a different point.
inline at::Tensor gradient_at(const at::Tensor& x, double rank, std::int64_t step) {
  return (x - rank) * 0.5 + 0.01 * static_cast<double>(step);
}

/// Trains kElements values with plain SGD and the strategy of this name, and calls `after(step, values of all ranks,
/// strategy)` after each step. After the last step the replicas must be equal.
template <class After>
void train(const std::string& name, const CommunicatorPtr& group, int steps, const After& after) {
  const at::NoGradGuard no_grad;
  const FlatParameters parameters(std::vector<at::Tensor>{at::full({kElements}, 3.0 + group->rank())}, *group, 1 << 20);
  const auto& bucket = parameters.buckets().at(0);
  const auto strategy = make_strategy(name, group);
  const auto slices = strategy->attach(parameters, Cut::kAnywhere);
  for (int step = 0; step < steps; ++step) {
    bucket.gradients.add_(gradient_at(bucket.values, group->rank(), step));
    strategy->before_update(step);
    for (const auto& slice : slices) {
      slice.values.sub_(slice.gradients, kRate);
      slice.gradients.zero_();
    }
    strategy->after_update(step);
    after(step, gather(bucket.values, *group), *strategy);
  }
  strategy->finish();
  const at::Tensor end = gather(bucket.values, *group);
  for (int rank = 1; rank < group->size(); ++rank) EXPECT_TRUE(at::equal(end[rank], end[0])) << "after the last step";
}

}  // namespace phalanx::testing
