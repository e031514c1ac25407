// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/strategy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <functional>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::kBucketBytes;
using testing::make_parameters;
using testing::make_strategy;
using ::testing::ThrowsMessage;

// Returns true if all ranks have the same bits of a tensor.
bool same_on_all_ranks(const at::Tensor& tensor, Communicator& group) {
  at::Tensor all = at::zeros({group.size(), tensor.numel()});
  all[group.rank()].copy_(tensor);
  group.all_reduce(all, Reduction::kSum).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!at::equal(all[rank], tensor)) return false;
  }
  return true;
}

class AllReduceSync : public ::testing::TestWithParam<int> {
 protected:
  using Body = std::function<void(const CommunicatorPtr&, Strategy&, const FlatParameters&)>;

  void run(const Body& body) {
    testing::run_ranks("inproc", GetParam(), [&](const CommunicatorPtr& group) {
      const FlatParameters parameters(make_parameters(group->rank()), *group, kBucketBytes);
      const auto strategy = make_strategy("all_reduce", group);
      body(group, *strategy, parameters);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, AllReduceSync, ::testing::Range(1, 5));

TEST_P(AllReduceSync, AttachingGivesEveryRankTheParametersOfRank0) {
  run([](const CommunicatorPtr&, Strategy& strategy, const FlatParameters& parameters) {
    strategy.attach(parameters, Cut::kAnywhere);
    for (const auto& bucket : parameters.buckets()) {
      for (const auto& parameter : bucket.parameters) {
        EXPECT_TRUE(at::equal(parameter.detach(), at::zeros(parameter.sizes())));
      }
    }
  });
}

TEST_P(AllReduceSync, GradientsBecomeTheMeanOfAllRanks) {
  run([](const CommunicatorPtr& group, Strategy& strategy, const FlatParameters& parameters) {
    const auto slices = strategy.attach(parameters, Cut::kAnywhere);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      slices[i].gradients.fill_(static_cast<double>(2 * (group->rank() + 1) + 100 * i));
    }
    strategy.before_update(0);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const auto mean = static_cast<double>(group->size() + 1 + 100 * i);
      EXPECT_TRUE(at::equal(slices[i].gradients, at::full_like(slices[i].gradients, mean))) << "bucket " << i;
    }
  });
}

TEST_P(AllReduceSync, AgreedGradientsAreBitwiseTheSameOnEveryRank) {
  run([](const CommunicatorPtr& group, Strategy& strategy, const FlatParameters& parameters) {
    const auto slices = strategy.attach(parameters, Cut::kAnywhere);
    for (int step = 0; step < 3; ++step) {
      for (const auto& slice : slices) slice.gradients.copy_(at::rand(slice.gradients.sizes()) / 3);
      strategy.before_update(step);
      for (const auto& slice : slices) EXPECT_TRUE(same_on_all_ranks(slice.gradients, *group));
    }
  });
}

TEST_P(AllReduceSync, SlicesAreTheBucketsThemselves) {
  run([](const CommunicatorPtr&, Strategy& strategy, const FlatParameters& parameters) {
    const auto slices = strategy.attach(parameters, Cut::kAnywhere);
    ASSERT_EQ(slices.size(), 3u);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      EXPECT_EQ(slices[i].values.data_ptr(), parameters.buckets()[i].values.data_ptr());
      EXPECT_EQ(slices[i].gradients.data_ptr(), parameters.buckets()[i].gradients.data_ptr());
    }
  });
}

TEST_P(AllReduceSync, AttachingAgainStartsOver) {
  run([](const CommunicatorPtr& group, Strategy& strategy, const FlatParameters& parameters) {
    strategy.attach(parameters, Cut::kAnywhere);
    const auto slices = strategy.attach(parameters, Cut::kAnywhere);
    EXPECT_EQ(slices.size(), parameters.buckets().size());
    for (const auto& slice : slices) slice.gradients.fill_(group->rank());
    strategy.before_update(0);
    EXPECT_EQ(slices[0].gradients[0].item<double>(), (group->size() - 1) / 2.0) << "not reduced twice";
  });
}

TEST(SingleSync, ChangesNothingOnOneRank) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    const FlatParameters parameters(make_parameters(7), *group, kBucketBytes);
    const auto strategy = make_strategy("single", group);
    const auto slices = strategy->attach(parameters, Cut::kAnywhere);
    ASSERT_EQ(slices.size(), parameters.buckets().size());
    for (const auto& slice : slices) slice.gradients.fill_(3);
    strategy->before_update(0);
    strategy->after_update(0);
    strategy->finish();
    for (const auto& slice : slices) {
      for (const auto& segment : slice.segments) {
        const at::Tensor values = view_of(slice.values, segment);
        EXPECT_TRUE(at::equal(values, at::full_like(values, 7)));
      }
      EXPECT_TRUE(at::equal(slice.gradients, at::full_like(slice.gradients, 3)));
    }
  });
}

TEST(SingleSync, RefusesMoreThanOneRank) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    EXPECT_THAT(
        [&] { make_strategy("single", group); },
        ThrowsMessage<ConfigError>("strategy single trains on one rank, but there are 2; use strategy: all_reduce"));
  });
}

}  // namespace
}  // namespace phalanx
