// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/retried_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr Seconds kPause{0.005}, kLong{20};

TEST(RetriedTask, SucceedsWhenTheDiskHasRoomAgain) {
  const auto full = std::make_shared<std::atomic<bool>>(true);
  RetriedTask task(
      [full] {
        if (*full) throw DataError("x: No space left on device");
      },
      kPause);
  EXPECT_FALSE(task.wait(Seconds(0.05)));
  EXPECT_EQ(task.trouble(), "x: No space left on device");
  *full = false;
  EXPECT_TRUE(task.wait(kLong));
  EXPECT_EQ(task.trouble(), "");
  EXPECT_NO_THROW(task.check());
}

TEST(RetriedTask, FailsOnceItGivesUp) {
  RetriedTask task([] { throw DataError("x: Input/output error"); }, kLong);
  while (task.trouble().empty()) std::this_thread::yield();
  EXPECT_FALSE(task.ended());
  task.give_up();
  EXPECT_TRUE(task.wait(kLong)) << "it does not wait for its next attempt";
  EXPECT_THROW(task.check(), DataError);
}

TEST(RetriedTask, DoesNotRepeatOtherErrors) {
  const auto attempts = std::make_shared<std::atomic<int>>(0);
  RetriedTask task(
      [attempts] {
        ++*attempts;
        throw std::logic_error("a mistake");
      },
      kPause);
  EXPECT_TRUE(task.wait(kLong));
  EXPECT_THROW(task.check(), std::logic_error);
  EXPECT_EQ(*attempts, 1);
}

TEST(RetriedTask, NobodyWaitsForOneThatHangs) {
  const auto go = std::make_shared<std::atomic<bool>>(false), over = std::make_shared<std::atomic<bool>>(false);
  {
    RetriedTask task([go, over] {
      while (!*go) std::this_thread::yield();
      *over = true;
    });
    EXPECT_FALSE(task.wait(Seconds(0.01)));
  }
  EXPECT_FALSE(*over);
  *go = true;
  while (!*over) std::this_thread::yield();
}

}  // namespace
}  // namespace phalanx
