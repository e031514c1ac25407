// SPDX-License-Identifier: Apache-2.0
// Tests layers that no sample of a step goes through, with momentum and weight decay: under strategies whose ranks or
// servers update by themselves, and with replicas in threads. equivalence_test.cc tests strategies that reduce
// gradients.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::file_name;
using testing::relative_difference;
using testing::run_ranks;
using testing::train;
using testing::training_config;

constexpr std::int64_t kUnused = 12 * 12 + 12, kBehind = 12 * 10 + 10;  // see branches_model.cc
constexpr const char* kServerSgd = "server_optimizer: {name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 0.001}";

std::string with_servers(const std::string& strategy) { return "{name: " + strategy + ", " + kServerSgd + "}"; }

// Trains the given number of steps, in each of which backward runs twice.
at::Tensor weights_after(int steps, std::vector<std::string> changes, const CommunicatorPtr& world,
                         const std::string& run) {
  changes.insert(changes.end(),
                 {"model=branches_under_test", "train.accumulate=2", "train.max_steps=" + std::to_string(steps)});
  return train(training_config(changes), world, run + "_" + std::to_string(steps)).weights;
}

void expect_unused_layer_as_it_was(const std::vector<std::string>& changes, int ranks, const std::string& run) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    const at::Tensor soon = weights_after(1, changes, world, run), late = weights_after(9, changes, world, run);
    const auto part = [&](const at::Tensor& weights, std::int64_t begin, std::int64_t count) {
      return weights.narrow(0, weights.numel() - begin, count);
    };
    EXPECT_TRUE(at::equal(part(soon, kBehind + kUnused, kUnused), part(late, kBehind + kUnused, kUnused)));
    EXPECT_FALSE(at::equal(part(soon, kBehind, kBehind), part(late, kBehind, kBehind)));
  });
}

// Uses 4 ranks, because the mean over 4 equal values is exactly that value.
class UnusedLayer : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(
    Strategies, UnusedLayer,
    ::testing::Values("{local_sgd: {every: 3, warmup_steps: 2}}", "{diloco: {every: 3}}", "gossip", "hogwild",
                      "{easgd: {every: 2}}", "{downpour: {every: 2}}", "ssp", "dc_asgd", with_servers("sync_ps"),
                      with_servers("downpour, every: 2"), with_servers("ssp"),
                      "{intra: all_reduce, inter: {local_sgd: {every: 3, warmup_steps: 2}}, ranks_per_group: 2}",
                      "{intra: sharded, inter: {ssp: {" + std::string(kServerSgd) + "}}, ranks_per_group: 2}"),
    [](const auto& info) { return file_name(info.param); });

TEST_P(UnusedLayer, KeepsItsInitialValues) {
  expect_unused_layer_as_it_was({"strategy=" + GetParam()}, 4, "unused_" + file_name(GetParam()));
}

using UnusedCase = std::tuple<std::string, int, int>;  // strategy, ranks, replicas

class UnusedInThreads : public ::testing::TestWithParam<UnusedCase> {
 protected:
  static std::vector<std::string> changes() {
    const auto& [strategy, ranks, replicas] = GetParam();
    return {"strategy=" + strategy, "train.data_parallel=" + std::to_string(replicas)};
  }
  static int ranks() { return std::get<1>(GetParam()); }
  static std::string run(const std::string& what) {
    return "unused_in_threads_" + what + file_name(std::get<0>(GetParam())) + std::to_string(ranks()) + "_" +
           std::to_string(std::get<2>(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Replicas, UnusedInThreads,
                         ::testing::Values(UnusedCase("single", 1, 2), UnusedCase("single", 1, 3),
                                           UnusedCase("all_reduce", 2, 2)));
INSTANTIATE_TEST_SUITE_P(OwnUpdates, UnusedInThreads, ::testing::Values(UnusedCase("{local_sgd: {every: 3}}", 2, 2)));

TEST_P(UnusedInThreads, KeepsItsInitialValues) { expect_unused_layer_as_it_was(changes(), ranks(), run("kept_")); }

// A layer that only the samples of one replica go through is used; its gradient is 0 in the others.
class UsedInThreads : public UnusedInThreads {};
INSTANTIATE_TEST_SUITE_P(Replicas, UsedInThreads,
                         ::testing::Values(UnusedCase("single", 1, 2), UnusedCase("single", 1, 3),
                                           UnusedCase("all_reduce", 2, 2)));

TEST_P(UsedInThreads, ReplicasFollowOneModel) {
  run_ranks("inproc", ranks(), [&](const CommunicatorPtr& world) {
    const auto alone = world->split(world->rank(), 0);
    const at::Tensor one =
        weights_after(20, {"strategy=single"}, alone, run("alone_") + "_" + std::to_string(world->rank()));
    const at::Tensor many = weights_after(20, changes(), world, run(""));
    EXPECT_LT(relative_difference(many, one), 1e-5);
  });
}

}  // namespace
}  // namespace phalanx
