// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/replica_check.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <utility>
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

ReplicaCheck check_of(const CommunicatorPtr& group, const FlatParameters& parameters,
                      ReplicaCheck::Options options = {}) {
  options.world_rank = group->rank();
  return {replicated_parameters(data_parallel_groups(Mesh(group), parameters)), options};
}

// The check detects a changed sign and swapped elements.
TEST(ReplicaCheck, NamesTheStepTheParameterAndTheRankThatDiffers) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    ReplicaCheck check = check_of(group, parameters);
    check.check(1);
    if (group->rank() == 1) parameters.buckets()[1].parameters[0].narrow(0, 3, 1).neg_();
    EXPECT_THAT([&] { check.check(7); },
                ThrowsMessage<Error>("after step 7 replicas differ: parameter conv.weight on rank 1"));
    if (group->rank() == 2) parameters.buckets()[0].values.copy_(parameters.buckets()[0].values.flip(0));
    EXPECT_THAT(
        [&] { check.check(8); },
        ThrowsMessage<Error>("after step 8 replicas differ: parameter fc.weight on rank 2, and 2 more tensors"));
  });
}

// A launcher looks for the first cause among errors that are not secondary.
TEST(ReplicaCheck, BlamesTheRankThatDiffers) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    ReplicaCheck check = check_of(group, parameters);
    if (group->rank() == 1) parameters.buckets()[0].values.neg_();
    try {
      check.check(2);
      ADD_FAILURE() << "nothing was found";
    } catch (const CommError& error) {
      EXPECT_NE(group->rank(), 1);
      EXPECT_TRUE(error.secondary());
    } catch (const Error&) {
      EXPECT_EQ(group->rank(), 1);
    }
  });
}

TEST(ReplicaCheck, WaitsUntilReplicasShouldBeEqual) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    if (group->rank() == 1) parameters.buckets()[0].values.neg_();
    ReplicaCheck check = check_of(group, parameters, {.every_steps = 4});
    check.after_step(3, true);
    check.after_step(4, false);
    check.after_step(5, false);
    EXPECT_THAT([&] { check.after_step(6, true); },
                ThrowsMessage<Error>(::testing::HasSubstr("after step 6 replicas differ")));
    ReplicaCheck last = check_of(group, parameters, {.every_steps = 4});
    last.at_end(3);
    last.after_step(4, false);
    EXPECT_TRUE(last.due());
    EXPECT_THAT([&] { last.at_end(5); }, ThrowsMessage<Error>(::testing::HasSubstr("after step 5 replicas differ")));
    ReplicaCheck never = check_of(group, parameters);
    for (int step = 1; step < 10; ++step) never.after_step(step, true);
  });
}

TEST(ReplicaCheck, RepairsWithTheValuesOfTheMajority) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    const at::Tensor good = parameters.buckets()[0].values.clone();
    ReplicaCheck check = check_of(group, parameters, {.repair = true});
    if (group->rank() == 0) parameters.buckets()[0].values.fill_(0);
    check.check(3);
    EXPECT_TRUE(at::equal(parameters.buckets()[0].values, good));
    EXPECT_EQ(check.repaired(), 2) << "fc.weight and conv.bias";
    EXPECT_NO_THROW(check_of(group, parameters).check(4));
  });
}

TEST(ReplicaCheck, EndsIfTheSameRankIsWrongTwice) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    const auto spoil = [&](int rank) {
      if (group->rank() == rank) parameters.buckets()[0].values.fill_(0);
    };
    ReplicaCheck check = check_of(group, parameters, {.repair = true, .ends_on_repetition = true});
    spoil(0), check.check(3);
    spoil(2), check.check(4);
    spoil(0);
    EXPECT_THAT(
        [&] { check.check(5); },
        ThrowsMessage<Error>(::testing::HasSubstr("fc.weight on rank 0, and 1 more tensor, for the second time")));
  });
}

// A rank is told of each of its wrong results, and the others are not.
TEST(ReplicaCheck, RemembersARankThatWasWrongBeforeTheRunWasStartedAgain) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    const auto spoil = [&](int rank) {
      if (group->rank() == rank) parameters.buckets()[0].values.fill_(0);
    };
    std::vector<std::string> told;
    ReplicaCheck check = check_of(group, parameters,
                                  {.repair = true,
                                   .ends_on_repetition = true,
                                   .wrong_before = group->rank() == 1,
                                   .on_wrong = [&](const std::string& text) { told.push_back(text); }});
    spoil(2), check.check(3);
    EXPECT_EQ(told.size(), group->rank() == 2 ? 1 : 0);
    spoil(1);
    EXPECT_THAT([&] { check.check(4); },
                ThrowsMessage<Error>(::testing::HasSubstr("on rank 1, and 1 more tensor, for the second time")));
    EXPECT_EQ(told.size(), group->rank() == 0 ? 0 : 1);
    const char* last[] = {"", "for the second time", "; repaired with the values of rank 0"};
    EXPECT_THAT(told.empty() ? "" : told.back(), ::testing::HasSubstr(last[group->rank()]));
  });
}

TEST(ReplicaCheck, NamesBothOfTwoRanksAndTrustsRank0) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto parameters = make_named_parameters(*group);
    parameters.buckets()[0].values.fill_(group->rank() + 5);
    ReplicaCheck check = check_of(group, parameters);
    EXPECT_THAT([&] { check.check(1); }, ThrowsMessage<CommError>(::testing::HasSubstr("on rank 0 or rank 1")));
    check_of(group, parameters, {.repair = true}).check(1);
    EXPECT_EQ(parameters.buckets()[0].values[0].item<float>(), 5);
  });
}

ReplicaCheck check_of_tensor(const CommunicatorPtr& group, const ReplicatedTensor& tensor, bool repair) {
  return {{{group, group, [tensor] { return std::vector<ReplicatedTensor>{tensor}; }}},
          {.repair = repair, .world_rank = group->rank()}};
}

TEST(ReplicaCheck, NamesAndRepairsOptimizerStateAndBuffers) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    for (const auto& [kind, words] : {std::pair(ReplicatedTensor::Kind::kOptimizerState, "optimizer state x on rank 2"),
                                      std::pair(ReplicatedTensor::Kind::kBuffer, "buffer x on rank 2")}) {
      const ReplicatedTensor tensor{"x", at::arange(12, at::kLong).view({3, 4}).t(), kind};
      if (group->rank() == 2) tensor.values[0][0].fill_(100);
      EXPECT_THAT([&] { check_of_tensor(group, tensor, false).check(1); },
                  ThrowsMessage<Error>(::testing::HasSubstr(words)));
      check_of_tensor(group, tensor, true).check(1);
      EXPECT_EQ(tensor.values[0][0].item<std::int64_t>(), 0);
    }
  });
}

// A buffer that all ranks change is a statistic of each rank's samples; one that a single rank has changed is not.
TEST(ReplicaCheck, ToleratesBuffersThatEachRankHasForItself) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const ReplicatedTensor mean{"mean", at::ones({4}), ReplicatedTensor::Kind::kBuffer, true};
    ReplicaCheck own = check_of_tensor(group, mean, false);
    own.start();
    mean.values.add_(group->rank() + 1);
    own.check(1);
    mean.values.add_(group->rank() + 1);
    own.check(2);
    const ReplicatedTensor table{"table", at::ones({4}), ReplicatedTensor::Kind::kBuffer, true};
    ReplicaCheck constant = check_of_tensor(group, table, false);
    constant.start();
    constant.check(1);
    if (group->rank() == 1) table.values[2].fill_(7);
    EXPECT_THAT([&] { constant.check(2); },
                ThrowsMessage<Error>("after step 2 replicas differ: buffer table on rank 1"));
  });
}

}  // namespace
}  // namespace phalanx
