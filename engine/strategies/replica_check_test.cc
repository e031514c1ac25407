// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/replica_check.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;
using ::testing::ThrowsMessage;

FlatParameters make_named_parameters(Communicator& group) {
  NamedTensors parameters;
  for (const char* name : {"conv.weight", "conv.bias", "fc.weight"}) {
    parameters.emplace_back(name, at::arange(1, 21).to(at::kFloat));
  }
  return {parameters, group, 100};
}

// The check detects a changed sign and swapped elements.
TEST(ReplicaCheck, NamesTheStepTheParameterAndTheRankThatDiffers) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    ReplicaCheck check(data_parallel_groups(Mesh(group), parameters), false);
    check.check(1);
    if (group->rank() == 1) parameters.buckets()[1].parameters[0].narrow(0, 3, 1).neg_();
    EXPECT_THAT([&] { check.check(7); },
                ThrowsMessage<Error>("after step 7 replicas differ: parameter conv.weight on rank 1"));
    if (group->rank() == 2) parameters.buckets()[0].values.copy_(parameters.buckets()[0].values.flip(0));
    EXPECT_THAT(
        [&] { check.check(8); },
        ThrowsMessage<Error>("after step 8 replicas differ: parameter fc.weight on rank 2, and 2 more parameters"));
  });
}

TEST(ReplicaCheck, WaitsUntilReplicasShouldBeEqual) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    if (group->rank() == 1) parameters.buckets()[0].values.neg_();
    ReplicaCheck check(data_parallel_groups(Mesh(group), parameters), false, 4);
    check.after_step(3, true);
    check.after_step(4, false);
    check.after_step(5, false);
    EXPECT_THAT([&] { check.after_step(6, true); },
                ThrowsMessage<Error>(::testing::HasSubstr("after step 6 replicas differ")));
    ReplicaCheck last(data_parallel_groups(Mesh(group), parameters), false, 4);
    last.at_end(3);
    last.after_step(4, false);
    EXPECT_TRUE(last.due());
    EXPECT_THAT([&] { last.at_end(5); }, ThrowsMessage<Error>(::testing::HasSubstr("after step 5 replicas differ")));
    ReplicaCheck never(data_parallel_groups(Mesh(group), parameters), false);
    for (int step = 1; step < 10; ++step) never.after_step(step, true);
  });
}

TEST(ReplicaCheck, RepairsWithTheValuesOfTheMajority) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    const at::Tensor good = parameters.buckets()[0].values.clone();
    ReplicaCheck check(data_parallel_groups(Mesh(group), parameters), true);
    if (group->rank() == 0) parameters.buckets()[0].values.fill_(0);
    check.check(3);
    EXPECT_TRUE(at::equal(parameters.buckets()[0].values, good));
    EXPECT_NO_THROW(ReplicaCheck(data_parallel_groups(Mesh(group), parameters), false).check(4));
  });
}

TEST(ReplicaCheck, TrustsRank0IfThereAreTwoRanks) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    parameters.buckets()[0].values.fill_(group->rank() + 5);
    ReplicaCheck(data_parallel_groups(Mesh(group), parameters), true).check(1);
    EXPECT_EQ(parameters.buckets()[0].values[0].item<float>(), 5);
  });
}

}  // namespace
}  // namespace phalanx
