// E2: adagrad against torch::optim::Adagrad.
#include <torch/optim/adagrad.h>

#include "engine/optim/testing_torch.h"

namespace phalanx::testing {
namespace {

using torch::optim::Adagrad;
using torch::optim::AdagradOptions;

TEST(AdagradReference, Plain) { expect_follows<Adagrad>("{name: adagrad, lr: 0.1}", AdagradOptions(0.1)); }

TEST(AdagradReference, DecayOfLearningRateAndWeights) {
  expect_follows<Adagrad>("{name: adagrad, lr: 0.1, lr_decay: 0.02, weight_decay: 0.1, eps: 1e-6}",
                          AdagradOptions(0.1).lr_decay(0.02).weight_decay(0.1).eps(1e-6));
}

TEST(AdagradReference, InitialSum) {
  expect_follows<Adagrad>("{name: adagrad, lr: 0.1, initial_sum: 0.5}",
                          AdagradOptions(0.1).initial_accumulator_value(0.5));
}

}  // namespace
}  // namespace phalanx::testing
