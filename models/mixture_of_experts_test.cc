// SPDX-License-Identifier: Apache-2.0
// Compares mixtures of experts with a loop over tokens, on one rank and on several ranks.
#include "models/mixture_of_experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
using ::testing::ThrowsMessage;

constexpr std::int64_t kExperts = 4, kWidth = 6, kHidden = 10, kTokens = 12;

MixtureOfExperts::Options options(double capacity_factor = 0) {
  return {.width = kWidth,
          .hidden = kHidden,
          .experts = kExperts,
          .top_k = 2,
          .capacity_factor = capacity_factor,
          .balance = 0.5,
          .deviation = 0.5,
          .deviation_into_sum = 0.5};
}

// Returns the same initial values on all ranks, which may be threads.
at::Tensor drawn(at::IntArrayRef sizes, std::int64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed)), at::TensorOptions());
}

std::map<std::string, at::Tensor> parameters_of(MixtureOfExperts& layer) {
  std::map<std::string, at::Tensor> all;
  for (const auto& parameter : layer.named_parameters()) all[parameter.key()] = parameter.value();
  return all;
}

void fill(MixtureOfExperts& layer) {
  const torch::NoGradGuard no_grad;
  std::int64_t seed = 0;
  for (auto& [name, parameter] : parameters_of(layer)) parameter.copy_(drawn(parameter.sizes(), ++seed) * 0.5);
}

struct Expected {
  at::Tensor output, balance;
};

// Computes the layer token by token, with at most `capacity` choices for each expert.
Expected by_hand(MixtureOfExperts& layer, const at::Tensor& tokens, std::int64_t capacity) {
  auto p = parameters_of(layer);
  const at::Tensor probabilities = at::softmax(at::linear(tokens, p["gate.weight"]), -1);
  std::vector<at::Tensor> rows;
  std::vector<double> taken(kExperts), chosen(kExperts);
  for (std::int64_t token = 0; token < tokens.size(0); ++token) {
    const auto [largest, experts] = at::topk(probabilities[token], 2);
    at::Tensor row = at::zeros({kWidth});
    for (int i = 0; i < 2; ++i) {
      const auto expert = experts[i].item<std::int64_t>();
      ++chosen[static_cast<std::size_t>(expert)];
      if (taken[static_cast<std::size_t>(expert)]++ >= static_cast<double>(capacity)) continue;
      const auto hidden =
          at::gelu(tokens[token].matmul(p["experts.c_fc.weight"][expert]) + p["experts.c_fc.bias"][expert], "tanh");
      row = row + largest[i] / largest.sum() *
                      (hidden.matmul(p["experts.c_proj.weight"][expert]) + p["experts.c_proj.bias"][expert]);
    }
    rows.push_back(row);
  }
  at::Tensor balance = at::zeros({});
  for (std::int64_t expert = 0; expert < kExperts; ++expert) {
    const double share = chosen[static_cast<std::size_t>(expert)] / (2.0 * static_cast<double>(tokens.size(0)));
    balance = balance + share * probabilities.select(1, expert).mean();
  }
  return {at::stack(rows), balance * 0.5 * kExperts};
}

void expect_as_by_hand(double capacity_factor, std::int64_t capacity) {
  MixtureOfExperts layer(options(capacity_factor)), reference(options());
  fill(layer), fill(reference);
  const at::Tensor x = drawn({kTokens, kWidth}, 50).requires_grad_(), y = x.detach().clone().requires_grad_();
  const at::Tensor upstream = drawn({kTokens, kWidth}, 51);
  const Expected expected = by_hand(reference, x, capacity);
  const at::Tensor output = layer.forward(y), balance = layer.take_balance_loss();
  EXPECT_TRUE(at::allclose(output, expected.output, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(balance, expected.balance, 1e-5, 1e-6));
  EXPECT_FALSE(layer.take_balance_loss().defined()) << "it is taken once";
  ((expected.output * upstream).sum() + expected.balance).backward();
  ((output * upstream).sum() + balance).backward();
  EXPECT_TRUE(at::allclose(y.grad(), x.grad(), 1e-4, 1e-6));
  auto want = parameters_of(reference);
  for (const auto& [name, parameter] : parameters_of(layer)) {
    EXPECT_TRUE(at::allclose(parameter.grad(), want.at(name).grad(), 1e-4, 1e-6)) << name;
  }
}

TEST(MixtureOfExperts, CombinesTheOutputsOfEachTokensExperts) { expect_as_by_hand(0, 2 * kTokens); }

TEST(MixtureOfExperts, DropsTokensBeyondAnExpertsCapacity) {
  expect_as_by_hand(0.5, 3);
  MixtureOfExperts layer(options(0.5));
  fill(layer);
  layer.forward(drawn({kTokens, kWidth}, 50));
  EXPECT_GT(layer.dropped(), 0);
}

TEST(MixtureOfExperts, CountsEachSequenceSeparatelyIfConfigured) {
  for (const double capacity_factor : {0.0, 0.5}) {
    auto by_sequence = options(capacity_factor);
    by_sequence.count_over = MixtureOfExperts::CountOver::kSequence;
    MixtureOfExperts layer(by_sequence), alone(options(capacity_factor));
    fill(layer), fill(alone);
    constexpr std::int64_t kSequences = 3;
    const at::Tensor x = drawn({kSequences, kTokens, kWidth}, 50);
    const at::Tensor output = layer.forward(x), balance = layer.take_balance_loss();
    at::Tensor sum = at::zeros({});
    for (std::int64_t i = 0; i < kSequences; ++i) {
      EXPECT_TRUE(at::allclose(output[i], alone.forward(x[i]), 1e-5, 1e-6)) << i;
      sum = sum + alone.take_balance_loss();
    }
    EXPECT_TRUE(at::allclose(balance, sum / kSequences, 1e-5, 1e-6));
    EXPECT_EQ(layer.dropped(), alone.dropped());
  }
}

TEST(MixtureOfExperts, HasNoBalanceLossInEvaluation) {
  MixtureOfExperts layer(options());
  layer.eval();
  layer.forward(drawn({kTokens, kWidth}, 50));
  EXPECT_FALSE(layer.take_balance_loss().defined());
}

// Each rank has some of the tokens and some of the experts.
TEST(MixtureOfExperts, IsTheSameOnAnyNumberOfRanks) {
  for (const double capacity_factor : {0.0, 0.5}) {
    for (const int ranks : {2, 4}) {
      run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
        MixtureOfExperts layer(options(capacity_factor)), whole(options(capacity_factor));
        fill(layer), fill(whole);
        const auto placements = layer.partition_experts(world, world);
        const at::Tensor all = drawn({kTokens, kWidth}, 50).requires_grad_();
        const auto share = kTokens / ranks, begin = share * world->rank();
        const at::Tensor own = all.detach().narrow(0, begin, share).clone().requires_grad_();
        const at::Tensor expected = whole.forward(all), output = layer.forward(own);
        EXPECT_TRUE(at::allclose(output, expected.narrow(0, begin, share), 1e-5, 1e-6));
        // The losses are means over tokens; each rank takes the mean over its own tokens.
        (expected.square().mean() + whole.take_balance_loss()).backward();
        (output.square().mean() + layer.take_balance_loss()).backward();
        EXPECT_TRUE(at::allclose(own.grad() / ranks, all.grad().narrow(0, begin, share), 1e-4, 1e-7));
        auto want = parameters_of(whole);
        for (const auto& [name, parameter] : parameters_of(layer)) {
          const auto placement = placements.find(name);
          at::Tensor gradient = parameter.grad().clone();
          if (placement == placements.end()) {
            world->all_reduce(gradient, Reduction::kMean).wait();
            EXPECT_TRUE(at::allclose(gradient, want.at(name).grad(), 1e-4, 1e-7)) << name;
          } else {
            EXPECT_TRUE(at::allclose(gradient, placement->second.take(want.at(name).grad()), 1e-4, 1e-7)) << name;
          }
        }
      });
    }
  }
}

TEST(MixtureOfExperts, PartitionsFrozenExperts) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    MixtureOfExperts layer(options()), whole(options());
    fill(layer), fill(whole);
    for (auto* const model : {&layer, &whole}) {
      for (auto& [name, parameter] : parameters_of(*model)) parameter.set_requires_grad(name == "gate.weight");
    }
    layer.partition_experts(world, world);
    const at::Tensor x = drawn({kTokens, kWidth}, 50);
    whole.forward(x).square().mean().backward();
    layer.forward(x).square().mean().backward();
    for (const auto& [name, parameter] : parameters_of(layer)) {
      EXPECT_EQ(parameter.grad().defined(), name == "gate.weight") << name;
    }
    EXPECT_TRUE(at::allclose(parameters_of(layer).at("gate.weight").grad(),
                             parameters_of(whole).at("gate.weight").grad(), 1e-4, 1e-7));
  });
}

TEST(MixtureOfExperts, RefusesRanksThatCannotDivideIt) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    MixtureOfExperts layer(options());
    EXPECT_THAT([&] { layer.partition_experts(world, world); },
                ThrowsMessage<ConfigError>(HasSubstr("has 4 experts, which cannot be divided among mesh.expert: 3")));
  });
}

}  // namespace
}  // namespace phalanx
