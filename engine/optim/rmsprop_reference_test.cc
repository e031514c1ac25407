// E2: rmsprop against torch::optim::RMSprop.
#include <torch/optim/rmsprop.h>

#include "engine/optim/testing_torch.h"

namespace phalanx::testing {
namespace {

using torch::optim::RMSprop;
using torch::optim::RMSpropOptions;

TEST(RmspropReference, Plain) { expect_follows<RMSprop>("{name: rmsprop, lr: 0.01}", RMSpropOptions(0.01)); }

TEST(RmspropReference, Momentum) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, momentum: 0.8, weight_decay: 0.1}",
                          RMSpropOptions(0.01).alpha(0.9).momentum(0.8).weight_decay(0.1));
}

TEST(RmspropReference, Centered) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, centered: true, eps: 1e-6}",
                          RMSpropOptions(0.01).alpha(0.9).centered(true).eps(1e-6));
}

TEST(RmspropReference, CenteredWithMomentum) {
  expect_follows<RMSprop>("{name: rmsprop, lr: 0.01, alpha: 0.9, centered: true, momentum: 0.5}",
                          RMSpropOptions(0.01).alpha(0.9).centered(true).momentum(0.5));
}

}  // namespace
}  // namespace phalanx::testing
