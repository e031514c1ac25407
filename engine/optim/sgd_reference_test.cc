// E2: sgd against torch::optim::SGD.
#include <torch/optim/sgd.h>

#include "engine/optim/testing_torch.h"

namespace phalanx::testing {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

TEST(SgdReference, Plain) { expect_follows<SGD>("{name: sgd, lr: 0.05}", SGDOptions(0.05)); }

TEST(SgdReference, WeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, weight_decay: 0.01}", SGDOptions(0.05).weight_decay(0.01));
}

TEST(SgdReference, Momentum) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.9}", SGDOptions(0.05).momentum(0.9));
}

TEST(SgdReference, NesterovWithWeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
                      SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.01));
}

TEST(SgdReference, DampeningWithWeightDecay) {
  expect_follows<SGD>("{name: sgd, lr: 0.05, momentum: 0.8, dampening: 0.1, weight_decay: 0.05}",
                      SGDOptions(0.05).momentum(0.8).dampening(0.1).weight_decay(0.05));
}

}  // namespace
}  // namespace phalanx::testing
