// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/random_state.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(RandomState, PutBackGivesTheSameNumbersAgain) {
  at::manual_seed(1);
  at::rand({3});
  const at::Tensor state = random_state();
  const at::Tensor first = at::rand({100});
  EXPECT_FALSE(at::equal(at::rand({100}), first));
  set_random_state(state);
  EXPECT_TRUE(at::equal(at::rand({100}), first));
}

TEST(RandomState, IsACopyThatDrawingDoesNotChange) {
  const at::Tensor state = random_state();
  const at::Tensor before = state.clone();
  at::rand({1000});
  EXPECT_TRUE(at::equal(state, before));
  EXPECT_FALSE(at::equal(random_state(), before));
}

}  // namespace
}  // namespace phalanx
