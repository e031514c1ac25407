// However replicas agree later, they begin as that of rank 0.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/sync/testing_strategy.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

// All that there are, with what their options change about it.
std::vector<std::string> strategies() {
  std::vector<std::string> all = Synchronizers::global().names();
  std::erase(all, "single");
  all.insert(all.end(), {"{name: sharded, one_copy: true}", "{name: local_sgd, compression: bf16}",
                         "{intra: sharded, inter: gossip, ranks_per_group: 2}",
                         "{intra: overlapped, inter: {local_sgd: {every: 4}}, ranks_per_group: 2}"});
  return all;
}

class Attach : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, Attach, ::testing::ValuesIn(strategies()),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(Attach, GivesEveryRankTheParametersOfRank0) {
  testing::run_ranks("inproc", 4, [](const CommunicatorPtr& group) {
    const at::NoGradGuard no_grad;
    const auto own = testing::make_parameters(group->rank());
    const FlatParameters parameters(own, *group, testing::kBucketBytes);
    const auto strategy = testing::make_strategy(GetParam(), group);
    const auto slices = strategy->attach(parameters, Cut::kAnywhere);
    for (const auto& parameter : own) EXPECT_TRUE(at::equal(parameter, at::zeros_like(parameter)));
    for (const auto& slice : slices) EXPECT_TRUE(at::equal(slice.values, at::zeros_like(slice.values)));
    group->barrier().wait();  // nobody changes what ranks share while others look at it
    strategy->finish();
  });
}

}  // namespace
}  // namespace phalanx
