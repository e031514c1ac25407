#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <torch/optim/sgd.h>

#include <string>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Root {
  Optimizers::Choice optimizer{"sgd"};
  template <class V>
  void visit(V& v) {
    v("optimizer", optimizer, "under test");
  }
};

std::unique_ptr<Optimizer> make(const std::string& fields) {
  Root root;
  config::load_text(root, "optimizer: {name: sgd, " + fields + "}", "test.yaml");
  return root.optimizer.make();
}

struct Case {
  const char* name;
  double momentum, dampening, weight_decay;
  bool nesterov;
};

class SgdCombination : public ::testing::TestWithParam<Case> {
 protected:
  std::string fields() const {
    const auto& p = GetParam();
    return "lr: 0.05, momentum: " + std::to_string(p.momentum) + ", dampening: " + std::to_string(p.dampening) +
           ", weight_decay: " + std::to_string(p.weight_decay) + ", nesterov: " + (p.nesterov ? "true" : "false");
  }

  torch::optim::SGDOptions reference_options() const {
    const auto& p = GetParam();
    return torch::optim::SGDOptions(0.05)
        .momentum(p.momentum)
        .dampening(p.dampening)
        .weight_decay(p.weight_decay)
        .nesterov(p.nesterov);
  }
};

TEST_P(SgdCombination, FollowsLibTorchsOwnFor100Steps) {
  const std::vector<at::Tensor> start{at::randn({1000}), at::randn({37})};
  std::vector<Slice> slices;
  std::vector<at::Tensor> reference;
  for (const auto& values : start) {
    slices.push_back({values.clone(), at::zeros_like(values)});
    reference.push_back(values.clone().requires_grad_());
  }
  const auto optimizer = make(fields());
  optimizer->attach(slices);
  torch::optim::SGD theirs(reference, reference_options());
  for (int step = 0; step < 100; ++step) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const at::Tensor gradient = at::randn(start[i].sizes());
      slices[i].gradients.copy_(gradient);
      reference[i].mutable_grad() = gradient;
    }
    optimizer->update();
    theirs.step();
  }
  for (std::size_t i = 0; i < slices.size(); ++i) {
    EXPECT_TRUE(at::allclose(slices[i].values, reference[i].detach(), 1e-6, 1e-6))
        << "slice " << i << " differs by " << (slices[i].values - reference[i].detach()).abs().max().item<float>();
    EXPECT_FALSE(at::allclose(slices[i].values, start[i], 1e-2, 1e-2)) << "it went somewhere";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sgd, SgdCombination,
    ::testing::Values(Case{"Plain", 0, 0, 0, false}, Case{"WeightDecay", 0, 0, 0.01, false},
                      Case{"Momentum", 0.9, 0, 0, false}, Case{"MomentumDampening", 0.9, 0.3, 0, false},
                      Case{"MomentumWeightDecay", 0.9, 0, 0.01, false}, Case{"Nesterov", 0.9, 0, 0, true},
                      Case{"NesterovWeightDecay", 0.9, 0, 0.01, true}, Case{"Everything", 0.8, 0.1, 0.05, false}),
    [](const auto& info) { return std::string(info.param.name); });

// S7. LibTorch's kernel rounds the elements behind the last whole vector differently, so only cuts between vectors keep
// every bit. That is what shards and buckets that are to change nothing have to be cut at.
TEST_P(SgdCombination, CutsAtMultiplesOf16ElementsChangeNoBit) {
  const at::Tensor whole = at::randn({64}), whole_gradient = at::zeros_like(whole);
  std::vector<Slice> parts;
  for (const std::int64_t begin : {0, 16, 48}) {
    const at::Tensor values = whole.slice(0, begin, begin == 16 ? 48 : begin + 16).clone();
    parts.push_back({values, at::zeros_like(values)});
  }
  const auto optimizer = make(fields()), sharded = make(fields());
  optimizer->attach({{whole, whole_gradient}});
  sharded->attach(parts);
  for (int step = 0; step < 20; ++step) {
    const at::Tensor gradient = at::randn({64});
    whole_gradient.copy_(gradient);
    parts[0].gradients.copy_(gradient.slice(0, 0, 16));
    parts[1].gradients.copy_(gradient.slice(0, 16, 48));
    parts[2].gradients.copy_(gradient.slice(0, 48, 64));
    optimizer->update();
    sharded->update();
  }
  EXPECT_TRUE(at::equal(at::cat({parts[0].values, parts[1].values, parts[2].values}), whole));
}

class SgdTest : public ::testing::Test {
 protected:
  // One update with gradients of 1; returns how far the parameter went.
  float go(Optimizer& optimizer) {
    const float before = slice_.values.item<float>();
    slice_.gradients.fill_(1);
    optimizer.update();
    return before - slice_.values.item<float>();
  }

  Slice slice_{at::full({1}, 0.0), at::full({1}, 0.0)};
};

TEST_F(SgdTest, ZeroesTheGradients) {
  const auto optimizer = make("lr: 0.5, momentum: 0.9");
  optimizer->attach({slice_});
  go(*optimizer);
  EXPECT_EQ(slice_.gradients.item<float>(), 0);
}

TEST_F(SgdTest, UsesTheLearningRateSetLast) {
  const auto optimizer = make("lr: 0.5");
  optimizer->attach({slice_});
  EXPECT_EQ(optimizer->learning_rate(), 0.5);
  EXPECT_FLOAT_EQ(go(*optimizer), 0.5f);
  optimizer->set_learning_rate(0.25);
  EXPECT_EQ(optimizer->learning_rate(), 0.25);
  EXPECT_FLOAT_EQ(go(*optimizer), 0.25f);
}

TEST_F(SgdTest, AttachingAgainForgetsTheMomentum) {
  const auto optimizer = make("lr: 1, momentum: 0.5");
  optimizer->attach({slice_});
  EXPECT_FLOAT_EQ(go(*optimizer), 1);
  EXPECT_FLOAT_EQ(go(*optimizer), 1.5);
  optimizer->attach({slice_});
  EXPECT_FLOAT_EQ(go(*optimizer), 1);
}

TEST_F(SgdTest, UpdatesParametersThatTrackGradients) {
  const at::Tensor leaf = at::full({3}, 1.0).requires_grad_();
  const auto optimizer = make("lr: 1");
  optimizer->attach({{leaf, at::full({3}, 1.0)}});
  optimizer->update();
  EXPECT_TRUE(at::equal(leaf.detach(), at::full({3}, 0.0)));
  EXPECT_TRUE(leaf.is_leaf());
}

TEST_F(SgdTest, NothingToUpdateIsFine) {
  const auto optimizer = make("momentum: 0.9");
  optimizer->attach({});
  EXPECT_NO_THROW(optimizer->update());
}

TEST_F(SgdTest, RefusesNesterovWithoutMomentumOrWithDampening) {
  const auto refused = ThrowsMessage<ConfigError>("nesterov needs a momentum above 0 and no dampening");
  EXPECT_THAT([] { make("nesterov: true"); }, refused);
  EXPECT_THAT([] { make("nesterov: true, momentum: 0.9, dampening: 0.1"); }, refused);
  EXPECT_NO_THROW(make("nesterov: true, momentum: 0.9"));
}

TEST_F(SgdTest, RefusesValuesOutOfRange) {
  EXPECT_THAT([] { make("lr: -1"); }, ThrowsMessage<ConfigError>(HasSubstr("optimizer.lr")));
  EXPECT_THAT([] { make("momentum: 1.5"); }, ThrowsMessage<ConfigError>(HasSubstr("optimizer.momentum")));
}

}  // namespace
}  // namespace phalanx
