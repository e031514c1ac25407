// E2: adam against torch::optim::Adam.
#include <torch/optim/adam.h>

#include "engine/optim/testing_torch.h"

namespace phalanx::testing {
namespace {

using torch::optim::Adam;
using torch::optim::AdamOptions;

TEST(AdamReference, Plain) { expect_follows<Adam>("{name: adam, lr: 0.01}", AdamOptions(0.01)); }

TEST(AdamReference, WeightDecayAndOtherBetas) {
  expect_follows<Adam>("{name: adam, lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.1}",
                       AdamOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.1));
}

TEST(AdamReference, Amsgrad) {
  expect_follows<Adam>("{name: adam, lr: 0.01, beta2: 0.9, amsgrad: true}",
                       AdamOptions(0.01).betas({0.9, 0.9}).amsgrad(true));
}

}  // namespace
}  // namespace phalanx::testing
