// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "framework/collectives/hierarchical/hierarchical_communicator.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

const char* const phalanx::testing::kBackend = "hybrid";

namespace phalanx::testing {
namespace {

// If the hosts were not distinguished, the suite would test only one of the two backends.
TEST(HybridWorld, IsHierarchical) {
  run_ranks(kBackend, 8, [](const CommunicatorPtr& world) {
    EXPECT_NE(std::dynamic_pointer_cast<HierarchicalCommunicator>(world), nullptr);
  });
}

}  // namespace
}  // namespace phalanx::testing
