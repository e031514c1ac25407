// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/loader_deadline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using testing::becomes_true;

// Collects the reason for which a run of rank 3 is ended.
class LoaderDeadlineTest : public ::testing::Test {
 protected:
  LoaderDeadline::Options options(double seconds) {
    return {.page = &page_,
            .rank = 3,
            .dataset = "mnist",
            .deadline = Seconds(seconds),
            .end = [this](const std::string& reason) {
              const std::lock_guard lock(mutex_);
              reason_ = reason;
            }};
  }
  std::string reason() {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  testing::Scratch scratch_;
  RankPage page_{3, 4, scratch_.folder()};

 private:
  std::mutex mutex_;
  std::string reason_;
};

TEST_F(LoaderDeadlineTest, NamesTheRankTheDatasetAndWhatTheLoaderDoes) {
  page_.set_step(11);
  const LoaderDeadline deadline(options(0.2));
  page_.enter(Activity::kLoading);
  ASSERT_TRUE(becomes_true([&] { return !reason().empty(); }, 60));
  EXPECT_EQ(reason().find("rank 3: dataset \"mnist\" has given no batch for step 12 within 0.2 s (loader.timeout): the "
                          "loader is blocked in sleep"),
            0U)
      << reason();
}

TEST_F(LoaderDeadlineTest, DoesNotEndARunThatGetsItsBatches) {
  const LoaderDeadline deadline(options(2));
  for (int step = 0; step < 30; ++step) {
    page_.enter(Activity::kLoading);
    ::usleep(50'000);
    page_.enter(Activity::kForward);
    ::usleep(50'000);
  }
  EXPECT_EQ(reason(), "");
}

TEST_F(LoaderDeadlineTest, DoesNotLimitOtherActivities) {
  const LoaderDeadline deadline(options(0.1));
  page_.enter(Activity::kForward);
  ::usleep(1'000'000);
  EXPECT_EQ(reason(), "");
}

}  // namespace
}  // namespace phalanx
