// SPDX-License-Identifier: Apache-2.0
// Compares recomputed activations with activations that were kept.
#include "framework/parallel/checkpointed.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/parallel/autocast.h"

namespace phalanx {
namespace {

// A network of three layers with dropout.
struct Network {
  Network() {
    at::manual_seed(7);
    for (int layer = 0; layer < 3; ++layer) weights.push_back((at::randn({16, 16}) / 4).requires_grad_());
  }

  at::Tensor layer(std::size_t i, const at::Tensor& x) {
    ++calls;
    const at::Tensor inside = at::linear(x, weights[i]);
    memory.push_back(inside.storage().getWeakStorageImpl());
    return at::dropout(at::gelu(inside), 0.3, true);
  }

  // Returns how many results of layers, since the last call, are still in memory.
  std::int64_t alive() {
    const auto count = std::ranges::count_if(memory, [](const auto& storage) { return !storage.expired(); });
    memory.clear();
    return count;
  }

  at::Tensor forward(const at::Tensor& input, bool checkpoint) {
    at::Tensor x = input;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto pass = [this, i](const at::Tensor& in) { return layer(i, in); };
      x = checkpoint ? checkpointed(pass, x) : pass(x);
    }
    return x;
  }

  // Returns the gradients of the input and the weights, with the same random numbers each time.
  std::vector<at::Tensor> gradients(const at::Tensor& values, bool checkpoint, at::ScalarType dtype = at::kFloat) {
    at::manual_seed(3);
    const at::Tensor input = values.clone().requires_grad_();
    at::Tensor output;
    {
      const Autocast autocast(at::kCPU, dtype);
      output = forward(input, checkpoint).to(at::kFloat);
    }
    (output * output).sum().backward();
    std::vector<at::Tensor> all{input.grad()};
    for (auto& weight : weights) {
      all.push_back(weight.grad());
      weight.mutable_grad() = at::Tensor();
    }
    return all;
  }

  std::vector<at::Tensor> weights;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> memory;
  int calls = 0;
};

TEST(Checkpointed, GradientsAreBitwiseThoseOfAPlainCall) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    Network network;
    const auto input = at::randn({8, 16});
    const auto kept = network.gradients(input, false, dtype);
    EXPECT_EQ(network.calls, 3);
    const auto computed = network.gradients(input, true, dtype);
    EXPECT_EQ(network.calls, 3 + 6) << "each layer twice";
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(computed[i], kept[i])) << i;
  }
}

TEST(Checkpointed, RandomNumbersGoOnAsIfNothingHadBeenComputedTwice) {
  Network network;
  const auto input = at::randn({8, 16});
  network.gradients(input, false);
  const auto after_plain = at::randn({4});
  network.gradients(input, true);
  EXPECT_TRUE(at::equal(at::randn({4}), after_plain));
}

TEST(Checkpointed, KnowsWhenItComputesAgain) {
  const auto x = at::randn({2}).requires_grad_();
  std::vector<bool> seen;
  const auto y = checkpointed(
      [&](const at::Tensor& in) {
        seen.push_back(recomputing());
        return in * in;
      },
      x);
  EXPECT_FALSE(recomputing());
  y.sum().backward();
  EXPECT_EQ(seen, (std::vector<bool>{false, true}));
  EXPECT_FALSE(recomputing());
  EXPECT_TRUE(at::equal(x.grad(), 2 * x.detach()));
}

TEST(Checkpointed, KeepsNothingButTheInput) {
  Network network;
  const auto input = at::randn({8, 16}).requires_grad_();
  const auto kept = network.forward(input, false);
  EXPECT_EQ(network.alive(), 3) << "what each layer's gelu needs";
  const auto computed = network.forward(input, true);
  EXPECT_EQ(network.alive(), 0);
  computed.sum().backward();
  EXPECT_EQ(network.alive(), 0) << "nor does it stay after backward";
}

TEST(Checkpointed, WithoutGradientsItIsAPlainCall) {
  Network network;
  const at::NoGradGuard no_grad;
  network.forward(at::randn({8, 16}).requires_grad_(), true);
  EXPECT_EQ(network.calls, 3);
}

// If nothing were kept, the weights would get no gradient.
TEST(Checkpointed, AnInputWithoutGradientIsKeptLikeAnyOther) {
  Network network;
  const auto y = checkpointed([&](const at::Tensor& x) { return network.layer(0, x); }, at::randn({2, 16}));
  y.sum().backward();
  EXPECT_TRUE(network.weights[0].grad().defined());
  EXPECT_EQ(network.calls, 1);
}

}  // namespace
}  // namespace phalanx
