// SPDX-License-Identifier: Apache-2.0
// Compares batch norm over the samples of all ranks with batch norm of one process over their union.
#include "framework/parallel/sync_batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr std::int64_t kChannels = 5;
constexpr double kEps = 1e-5;

struct Passed {
  at::Tensor output, grad_input, grad_weight, grad_bias, running_mean, running_variance;
};

// A batch, its upstream gradient, and the layer.
struct Layer {
  explicit Layer(std::int64_t rows) {
    input = at::randn({rows, kChannels, 3, 4}) * 2 + at::randn({kChannels, 1, 1}) * 3;
    upstream = at::randn({rows, kChannels, 3, 4});
  }

  Passed alone() const {
    const auto x = input.clone().requires_grad_(), w = weight.clone().requires_grad_(),
               b = bias.clone().requires_grad_();
    const auto mean = at::zeros({kChannels}), variance = at::ones({kChannels});
    const auto y = at::batch_norm(x, w, b, mean, variance, true, 0.1, kEps, false);
    y.backward(upstream);
    return {y.detach(), x.grad(), w.grad(), b.grad(), mean, variance};
  }

  // Computes rows [begin, end), followed by `padding` rows of nonsense.
  Passed share(const CommunicatorPtr& group, std::int64_t begin, std::int64_t end, std::int64_t padding,
               at::MemoryFormat format = at::MemoryFormat::Contiguous) const {
    const auto more = at::full({padding, kChannels, 3, 4}, 1e3);
    const auto x = at::concat({input.slice(0, begin, end), more}).contiguous(format).requires_grad_();
    const auto w = weight.clone().requires_grad_(), b = bias.clone().requires_grad_();
    const RunningStatistics running{at::zeros({kChannels}), at::ones({kChannels}), 0.1};
    const auto y = sync_batch_norm(x, w, b, running, kEps, {group, end - begin});
    y.backward(at::concat({upstream.slice(0, begin, end), at::zeros_like(more)}));
    return {y.detach(), x.grad(), w.grad(), b.grad(), running.mean, running.variance};
  }

  at::Tensor input, upstream, weight = at::randn({kChannels}), bias = at::randn({kChannels});
};

bool close(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-4, 1e-5); }

struct Share {
  std::int64_t rows, padding;
};

class SyncBatchNorms : public ::testing::TestWithParam<std::vector<Share>> {};

TEST_P(SyncBatchNorms, ManyRanksComputeTheSameAsOne) {
  std::int64_t rows = 0;
  for (const auto& share : GetParam()) rows += share.rows;
  const Layer layer(rows);
  const auto one = layer.alone();
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    testing::run_ranks("inproc", static_cast<int>(GetParam().size()), [&](const CommunicatorPtr& group) {
      at::set_num_threads(1);
      const auto rank = static_cast<std::size_t>(group->rank());
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < rank; ++i) begin += GetParam()[i].rows;
      const auto [own, padding] = GetParam()[rank];
      const auto many = layer.share(group, begin, begin + own, padding, format);
      EXPECT_TRUE(close(many.output.narrow(0, 0, own), one.output.slice(0, begin, begin + own)));
      EXPECT_TRUE(close(many.grad_input.narrow(0, 0, own), one.grad_input.slice(0, begin, begin + own)));
      EXPECT_TRUE(at::equal(many.grad_input.narrow(0, own, padding), at::zeros({padding, kChannels, 3, 4})));
      EXPECT_TRUE(close(many.running_mean, one.running_mean));
      EXPECT_TRUE(close(many.running_variance, one.running_variance));
      at::Tensor sums = at::concat({many.grad_weight, many.grad_bias}), root = many.running_variance.clone();
      group->all_reduce(sums, Reduction::kSum).wait();
      EXPECT_TRUE(close(sums, at::concat({one.grad_weight, one.grad_bias})));
      group->broadcast(root, 0).wait();
      EXPECT_TRUE(at::equal(root, many.running_variance)) << "statistics are bitwise the same on all ranks";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, SyncBatchNorms,
                         ::testing::Values(std::vector<Share>{{6, 0}}, std::vector<Share>{{6, 2}},
                                           std::vector<Share>{{4, 0}, {4, 0}}, std::vector<Share>{{3, 0}, {2, 1}},
                                           std::vector<Share>{{2, 0}, {2, 0}, {1, 0}, {0, 1}}),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

// If squares were summed up, rounding would lose the variance of numbers far from 0.
TEST(SyncBatchNorm, VarianceSurvivesALargeMean) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto noise = at::concat({at::full({2, 1, 2, 2}, -1.0), at::full({2, 1, 2, 2}, 1.0)});
    const RunningStatistics running{at::zeros({1}), at::zeros({1}), 1};
    sync_batch_norm(noise + 4096, at::ones({1}), at::zeros({1}), running, kEps, {group, 4});
    EXPECT_EQ(running.mean.item<float>(), 4096);
    EXPECT_FLOAT_EQ(running.variance.item<float>(), 32.0F / 31);
  });
}

TEST(SyncBatchNorm, ABatchOfPaddingAloneKeepsStatisticsAndGradients) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const RunningStatistics running{at::full({kChannels}, 2.0), at::full({kChannels}, 4.0)};
    const auto x = at::full({1, kChannels, 1, 1}, 4.0).requires_grad_();
    const auto w = at::ones({kChannels}).requires_grad_(), b = at::zeros({kChannels}).requires_grad_();
    const auto y = sync_batch_norm(x, w, b, running, 0, {group, 0});
    (y * 0).sum().backward();
    EXPECT_TRUE(close(y.detach(), at::ones_like(y))) << "(4 - 2) / 2, by the running statistics";
    EXPECT_TRUE(at::equal(running.mean, at::full({kChannels}, 2.0)));
    EXPECT_TRUE(at::equal(x.grad(), at::zeros_like(x)));
  });
}

TEST(SyncBatchNorm, OfOneValuePerChannelOnAllRanksTogetherIsAnError) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto norm = [&](std::int64_t valid) {
      const RunningStatistics running{at::zeros({kChannels}), at::ones({kChannels})};
      sync_batch_norm(at::randn({1, kChannels, 1, 1}), at::ones({kChannels}), at::zeros({kChannels}), running, kEps,
                      {group, valid});
    };
    EXPECT_THAT([&] { norm(group->rank() == 0 ? 1 : 0); },
                ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("more than 1 value per channel")));
    EXPECT_NO_THROW(norm(1)) << "two values, one on each rank";
  });
}

TEST(SyncBatchNorm, TakesHalfPrecision) {
  const Layer layer(8);
  const auto one = layer.alone();
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
      const std::int64_t begin = group->rank() * 4;
      const auto x = layer.input.slice(0, begin, begin + 4).to(dtype).requires_grad_();
      const auto w = layer.weight.clone().requires_grad_(), b = layer.bias.clone().requires_grad_();
      const auto y = sync_batch_norm(x, w, b, {}, kEps, {group, 4});
      EXPECT_EQ(y.scalar_type(), dtype);
      y.backward(layer.upstream.slice(0, begin, begin + 4).to(dtype));
      EXPECT_EQ(x.grad().scalar_type(), dtype);
      EXPECT_EQ(w.grad().scalar_type(), at::kFloat);
      const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
        return ((a.to(at::kFloat) - b).norm() / b.norm()).item<double>();
      };
      EXPECT_LT(difference(y.detach(), one.output.slice(0, begin, begin + 4)), 0.01);
      EXPECT_LT(difference(x.grad(), one.grad_input.slice(0, begin, begin + 4)), 0.02);
    });
  }
}

TEST(SyncBatchNorm, RefusesMoreSamplesThanRows) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& group) {
    EXPECT_ANY_THROW(sync_batch_norm(at::randn({2, 1, 1, 1}), at::ones({1}), at::zeros({1}), {}, kEps, {group, 3}));
  });
}

}  // namespace
}  // namespace phalanx
