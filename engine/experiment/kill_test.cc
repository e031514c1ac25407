// SPDX-License-Identifier: Apache-2.0
// Kills runs with SIGKILL at random moments. A run that resumes from its checkpoints must equal an uninterrupted run
// bit for bit.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/testing/run.h"
#include "framework/base/environment.h"
#include "framework/base/files.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using testing::Changes;
using ::testing::Each;
using testing::metrics_but_times;
using testing::new_path;
using testing::run_tiny;

// 7 steps an epoch, 42 steps in total. Saves after every second step, so that most kills hit an unfinished checkpoint.
const Changes kChanges{"model.hidden=[64]",
                       "framework.bucket_bytes=25MB",
                       "schedule={name: plateau, patience: 0, threshold: 0.2, gamma: 0.5}",
                       "train={global_batch_size: 16, epochs: 6}",
                       "watch.every_steps=5",
                       "checkpoint={every_steps: 2, keep_last: 2, resume: auto}"};

// Returns the path of the file that a process writes when it has resumed from a checkpoint.
std::string note_of(const std::string& path) { return path + ".resumed"; }

// Trains with two ranks in one process, so that SIGKILL ends both at the same time.
[[noreturn]] void train(const std::string& path) {
  const auto note = [&](Engine& engine, int rank) {
    engine.on(Event::kStart, [&, rank](State& state) {
      if (rank == 0 && state.step > 0) std::ofstream(note_of(path)) << state.step;
    });
  };
  const auto run = run_tiny(2, RunFolder::create(path, /*goes_on=*/true), kChanges, {.add_hooks = note});
  EXPECT_THAT(run.errors, Each(""));
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Trains in a child process and kills it after `time`. Returns true if it ended by itself. The test fails if the child
// exits with an error or dies of any other signal.
bool train_for(const std::string& path, Clock::duration time) {
  const pid_t child = ::fork();
  if (child == 0) train(path);
  const auto end = Clock::now() + time;
  bool killed = false;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      killed = true;
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return false;
  EXPECT_TRUE(WIFEXITED(status)) << "died of signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return true;
}

TEST(Kill, ARunKilledAtRandomMomentsEndsLikeAnUninterruptedOne) {
  const auto kills = environment_int("KILLS").value_or(6);
  const std::string whole = new_path();
  const auto start = Clock::now();
  ASSERT_TRUE(train_for(whole, std::chrono::minutes(5)));
  const auto duration = Clock::now() - start;
  const std::string weights = read_file(RunFolder(whole).weights());
  const auto lines = metrics_but_times(RunFolder(whole));
  std::int64_t killed = 0, resumed = 0;
  for (std::uint64_t run = 0; killed < kills; ++run) {
    const std::string path = new_path();
    // The third attempt is not killed: a run that is killed early every time would never end.
    for (std::uint64_t attempt = 0; attempt < 2; ++attempt) {
      const auto moment = static_cast<double>(mix(mix(11, run), attempt) % 1000) / 1000;
      if (!train_for(path, std::chrono::duration_cast<Clock::duration>(duration * moment))) ++killed;
    }
    ASSERT_TRUE(train_for(path, std::chrono::minutes(5)));
    ASSERT_FALSE(HasFailure()) << "run " << run;
    ASSERT_EQ(read_file(RunFolder(path).weights()), weights) << "run " << run;
    ASSERT_EQ(metrics_but_times(RunFolder(path)), lines) << "run " << run;
    resumed += fs::remove(note_of(path)) ? 1 : 0;
    fs::remove_all(path);
  }
  EXPECT_GT(resumed, 0) << "no run resumed: all started from the beginning, which gives the same result";
}

}  // namespace
}  // namespace phalanx
