// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/collect.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/wall_clock.h"
#include "framework/observe/hang/process_state.h"
#include "framework/testing/scratch.h"

namespace phalanx {
namespace {

using Process = RankPicture::Process;

// Waits up to 60 s for a condition.
template <class Condition>
bool becomes(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

class Collect : public ::testing::Test {
 protected:
  ~Collect() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  // Forks a process that is rank 1 of 2, in forward of step 6, which sleeps in pause().
  void start_rank() {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      RankPage page(1, 2, folder_);
      page.set_step(5);
      page.enter(Activity::kForward);
      page.publish(
          to_json(RankPicture{.rank = 1, .dataset = "digits", .operations = {{.number = 3, .op = "barrier"}}}));
      announce(page, folder_, 1);
      for (;;) ::pause();
    }
    ASSERT_TRUE(becomes([&] { return picture_of_job(folder_, 2).find(1) != nullptr; }));
  }

  RankPicture picture() const { return *picture_of_job(folder_, 2).find(1); }

  testing::Scratch scratch_;
  const std::string& folder_ = scratch_.folder();
  pid_t child_ = 0;
};

TEST_F(Collect, ReadsWhatAnotherProcessDoes) {
  start_rank();
  const auto job = picture_of_job(folder_, 2);
  EXPECT_EQ(job.ranks.size(), 1U) << "nothing is known of rank 0";
  const auto rank = picture();
  EXPECT_EQ(rank.host, host_name());
  EXPECT_EQ(rank.process, child_);
  EXPECT_EQ(rank.state, Process::kRuns);
  EXPECT_EQ(rank.activity, "forward");
  EXPECT_NEAR(rank.activity_since, wall_seconds(), 60);
  EXPECT_EQ(rank.step, 5);
  EXPECT_EQ(rank.dataset, "digits");
  ASSERT_EQ(rank.operations.size(), 1U);
  EXPECT_EQ(rank.operations[0].op, "barrier");
}

TEST_F(Collect, SeesThatAProcessIsStopped) {
  start_rank();
  ::kill(child_, SIGSTOP);
  EXPECT_TRUE(becomes([&] { return picture().state == Process::kStopped; }));
  EXPECT_EQ(picture().activity, "forward") << "the page is readable";
}

TEST_F(Collect, SeesThatAProcessIsGone) {
  start_rank();
  ::kill(child_, SIGKILL);
  EXPECT_TRUE(becomes([&] { return picture().state == Process::kGone; })) << "also while it is a zombie";
  ::waitpid(child_, nullptr, 0);
  const auto gone = std::exchange(child_, 0);
  EXPECT_EQ(picture().state, Process::kGone);
  EXPECT_EQ(picture().process, gone);
}

TEST_F(Collect, FindsTheRanksThatALauncherHasStarted) {
  start_rank();
  const auto job = picture_of_process(::getpid());
  EXPECT_EQ(job.size, 2);
  ASSERT_EQ(job.ranks.size(), 1U);
  EXPECT_EQ(job.ranks[0].process, child_);
  EXPECT_EQ(picture_of_process(child_).ranks.size(), 1U);
}

TEST_F(Collect, RefusesAProcessWithoutRanks) {
  EXPECT_THROW(picture_of_process(::getpid()), Error);
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  EXPECT_THROW(picture_of_process(ended), Error);
}

TEST_F(Collect, ReadsWhatARankOfAnotherHostHasWritten) {
  write_picture(folder_, {.rank = 0, .host = "node7", .activity = "forward", .step = 4});
  EXPECT_EQ(picture_of_job(folder_, 2).find(0)->host, "node7");
  remove_picture(folder_, 0);
  EXPECT_EQ(picture_of_job(folder_, 2).find(0), nullptr);
}

TEST(BlockedIn, NamesThePipeThatIsFull) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<pid_t> thread = 0;
  std::jthread writer([&] {
    const std::string much(1 << 20, 'x');
    thread = ::gettid();
    EXPECT_EQ(::write(ends[1], much.data(), much.size()), static_cast<ssize_t>(much.size()));
  });
  const auto blocked = [&] { return thread == 0 ? std::string() : blocked_in(::getpid(), thread); };
  EXPECT_TRUE(becomes([&] { return blocked().starts_with("write to pipe:["); })) << blocked();
  std::string sink(1 << 20, ' ');
  for (std::size_t read = 0; read < sink.size();) {
    read += static_cast<std::size_t>(::read(ends[0], sink.data(), sink.size()));
  }
  writer.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace phalanx
