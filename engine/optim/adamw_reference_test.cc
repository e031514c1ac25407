// E2: adamw against torch::optim::AdamW.
#include <torch/optim/adamw.h>

#include "engine/optim/testing_torch.h"

namespace phalanx::testing {
namespace {

using torch::optim::AdamW;
using torch::optim::AdamWOptions;

TEST(AdamWReference, Plain) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, weight_decay: 0.02}", AdamWOptions(0.01).weight_decay(0.02));
}

TEST(AdamWReference, WeightDecayAndOtherBetas) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.3}",
                        AdamWOptions(0.01).betas({0.8, 0.95}).eps(1e-6).weight_decay(0.3));
}

TEST(AdamWReference, Amsgrad) {
  expect_follows<AdamW>("{name: adamw, lr: 0.01, beta2: 0.9, weight_decay: 0.02, amsgrad: true}",
                        AdamWOptions(0.01).betas({0.9, 0.9}).weight_decay(0.02).amsgrad(true));
}

}  // namespace
}  // namespace phalanx::testing
