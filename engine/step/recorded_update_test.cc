// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recorded_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "engine/testing/fakes.h"
#include "engine/testing/optimizer.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kRecorded = "sgd";
constexpr const char* kNotRecorded = "lion";

// Calls the body on two ranks, whose optimizers are these.
void on_two_ranks(const std::array<std::string, 2>& optimizers, bool required,
                  const std::function<void(RecordedUpdate&, int rank)>& body) {
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    testing::FakeStrategy strategy;
    const auto optimizer = testing::make_optimizer(optimizers.at(static_cast<std::size_t>(world->rank())));
    StepClock clock;
    RecordedUpdate update(strategy, *optimizer, clock, world, required);
    body(update, world->rank());
  });
}

TEST(RecordedUpdates, AreReplayedIfAllRanksHaveAGraph) {
  on_two_ranks({kRecorded, kRecorded}, true, [](RecordedUpdate& update, int rank) {
    EXPECT_EQ(update.agree(true, true), Course::kReplay);
    EXPECT_EQ(update.agree(rank == 0, true), Course::kRecord);
    EXPECT_EQ(update.agree(false, true), Course::kRecord);
  });
}

TEST(RecordedUpdates, AreLaunchedIfARankMayNotRecordThem) {
  on_two_ranks({kRecorded, kNotRecorded}, true, [](RecordedUpdate& update, int rank) {
    EXPECT_EQ(update.agree(rank == 0, rank == 0), Course::kLaunch);
    EXPECT_EQ(update.agree(false, rank == 1), Course::kLaunch);
    EXPECT_EQ(update.agree(false, false), Course::kLaunch);
  });
}

TEST(RecordedUpdates, AreInNoGraphIfThatOfARankCannotContainThem) {
  on_two_ranks({kRecorded, kNotRecorded}, false, [](RecordedUpdate& update, int) {
    EXPECT_EQ(update.agree(false, true), Course::kRecordBackward);
    EXPECT_EQ(update.agree(true, true), Course::kReplay);
  });
}

TEST(RecordedUpdates, AreRefusedOnAllRanksIfThatOfARankIsRequiredAndCannotBeRecorded) {
  on_two_ranks({kRecorded, kNotRecorded}, true, [](RecordedUpdate& update, int rank) {
    const char* const why = rank == 0 ? "another rank cannot record its update" : "the learning rate from the host";
    EXPECT_THAT([&] { update.agree(false, true); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("the graph cannot contain the update"), HasSubstr(why))));
  });
}

TEST(RecordedUpdates, OfARankAloneDependOnItselfOnly) {
  testing::FakeStrategy strategy;
  const auto optimizer = testing::make_optimizer(kRecorded);
  StepClock clock;
  RecordedUpdate update(strategy, *optimizer, clock, nullptr, true);
  EXPECT_EQ(update.agree(false, true), Course::kRecord);
  EXPECT_EQ(update.agree(true, true), Course::kReplay);
  EXPECT_EQ(update.agree(false, false), Course::kLaunch);
}

}  // namespace
}  // namespace phalanx
