// SPDX-License-Identifier: Apache-2.0
// Tests that every operation in the table is run, and that its result is checked.
#include "tools/doctor/operations.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "framework/comm/decorator.h"
#include "framework/testing/worlds.h"
#include "tools/doctor/diagnosis.h"

namespace phalanx::doctor {
namespace {

TEST(Operations, AreTheOnesInTheTable) {
  std::vector<std::string> passed;
  for (const auto& operation : operations()) passed.push_back(operation.name);
  EXPECT_EQ(passed, std::vector<std::string>(std::begin(kOperationNames), std::end(kOperationNames)));
}

TEST(Operations, PassOnABackendThatHasThem) {
  for (const int ranks : {1, 2, 3}) {
    testing::run_ranks("inproc", ranks, [](const CommunicatorPtr& world) {
      for (const auto& operation : operations()) EXPECT_TRUE(operation.passes(*world)) << operation.name;
    });
  }
}

/// A communicator that launches nothing.
class Lazy final : public Decorator {
 public:
  using Decorator::Decorator;
  Work launch(Operation) override { return {}; }
  Work run(const Call&, std::function<void()>) override { return {}; }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<Lazy>(std::move(child)); }
};

TEST(Operations, FailOnABackendThatDoesNothing) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    Lazy lazy(world);
    for (const auto& operation : operations()) {
      if (operation.name == "barrier") continue;  // has no result
      const at::Tensor passed = at::full({1}, operation.passes(lazy) ? 1.0 : 0.0);
      world->all_reduce(passed, Reduction::kMin).wait();
      EXPECT_EQ(passed.item<float>(), 0) << operation.name;
    }
  });
}

}  // namespace
}  // namespace phalanx::doctor
