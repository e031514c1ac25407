// SPDX-License-Identifier: Apache-2.0
// Tests of barrier(timeout) with a rank that does not arrive.
#include <gtest/gtest.h>

#include <chrono>

#include "framework/base/error.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Absence : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Absence, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Absence, EndsABarrierAfterItsTimeout) {
  run([](const CommunicatorPtr& world) {
    const auto group = world->split(0, 0);
    const bool absent = world->rank() == world->size() - 1;
    if (!absent) {
      try {
        group->barrier(Seconds(0.3)).wait();
        ADD_FAILURE() << "the last rank never arrived";
      } catch (const CommError& error) {
        // The second rank to give up may already know about the first.
        EXPECT_TRUE(error.kind() == CommError::Kind::kTimeout || error.kind() == CommError::Kind::kPeerLost);
        EXPECT_TRUE(world->size() > 2 || error.kind() == CommError::Kind::kTimeout);
        for (const char* word : {"barrier", group->name().c_str(), " s"}) {
          EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
      }
    }
    world->barrier().wait();  // other groups still work
  });
}

TEST_P(Absence, DoesNotMatterToABarrierWithinItsTimeout) {
  run([](const CommunicatorPtr& world) {
    for (int i = 0; i < 10; ++i) world->barrier(Seconds(20)).wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
