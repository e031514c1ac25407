// SPDX-License-Identifier: Apache-2.0
// Tests checkpoints that cannot be written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine/testing/checkpoints.h"
#include "framework/comm/launch/host_lease.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using testing::Checkpoints;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Rank;
using testing::run_ranks;
using testing::Sharing;

// Writing files beyond a limit fails as on a full disk.
class FullDisk : public Checkpoints {
 protected:
  void limit(rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk() { previous_ = ::signal(SIGXFSZ, SIG_IGN); }
  ~FullDisk() override {
    limit(RLIM_INFINITY);
    ::signal(SIGXFSZ, previous_);
  }

 private:
  void (*previous_)(int);
};

TEST_F(FullDisk, AllRanksAbandonTheCheckpointAndTheNextOneSucceeds) {
  save(2, Sharing::kReplicas, 1, 1);
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(2);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    if (world->rank() == 0) limit(60);
    world->barrier().wait();
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_THAT(checkpointer.failure(), HasSubstr("File too large"));
    EXPECT_EQ(checkpointer.failed(), 1);
    world->barrier().wait();
    if (world->rank() == 0) {
      EXPECT_FALSE(fs::exists(folder_.temporary_path(2))) << "nothing of it is left";
      EXPECT_EQ(folder_.newest_intact([](const std::string&) {}).path, folder_.final_path(1));
      limit(RLIM_INFINITY);
    }
    world->barrier().wait();
    checkpointer.save(at_step(3), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
  expect_loads(2, Sharing::kReplicas, 2);
}

TEST_F(FullDisk, AllRanksGetTheReasonWhyOneCouldNotWrite) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    const std::string taken = folder_.temporary_path(2) + "/" + state_file(1, 2);
    if (world->rank() == 1) fs::create_directories(taken);
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), taken + ": Is a directory");
  });
}

TEST_F(Checkpoints, SavingFailsWhileTheRunFolderIsRenamed) {
  const auto run = fs::path(folder_.path()).parent_path();
  const fs::path renamed = run.string() + "-renamed";
  fs::remove_all(renamed);
  fs::create_directories(run);
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    const auto save_after = [&](const std::function<void()>& change) {
      world->barrier().wait();
      if (world->rank() == 0) change();
      world->barrier().wait();
      checkpointer.save(at_step(2), true);
      checkpointer.settle();
      return checkpointer.failure();
    };
    const std::string why = run.string() + ": was removed or renamed during the run";
    EXPECT_EQ(save_after([&] { fs::rename(run, renamed); }), why);
    EXPECT_FALSE(fs::exists(run)) << "it was not created again";
    EXPECT_EQ(save_after([&] { fs::create_directories(run); }), why) << "another folder of the same name";
    EXPECT_EQ(save_after([&] {
                fs::remove_all(run);
                fs::rename(renamed, run);
              }),
              "");
  });
}

TEST_F(FullDisk, AManifestThatCannotBeWrittenIsAFailureOnAllRanks) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state);
    Manifest manifest = at_step(2);
    manifest.provenance = {{"command", std::string(5000, 'x')}};
    if (world->rank() == 0) limit(4000);
    world->barrier().wait();
    checkpointer.save(manifest, true);
    checkpointer.settle();
    EXPECT_NE(checkpointer.failure(), "");
    EXPECT_EQ(checkpointer.written(), 0);
  });
  EXPECT_EQ(folder_.newest_intact([](const std::string&) {}).path, "");
}

// Runs a rank alone whose lease holds for so many looks at it, and saves a checkpoint.
void save_with_lease(const CheckpointFolder& folder, const Manifest& manifest, int looks) {
  const auto clock = [seen = std::make_shared<std::atomic<int>>(0)] { return std::chrono::nanoseconds((*seen)++); };
  set_lease_of_process(std::make_shared<HostLease>(1, std::chrono::nanoseconds(looks), clock));
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder, {}, world, rank.state);
    checkpointer.save(manifest, true);
    checkpointer.settle();
  });
}

TEST_F(Checkpoints, ARankWhoseLeaseIsOverWritesNoFile) {
  EXPECT_EXIT(save_with_lease(folder_, at_step(2), 0), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_FALSE(fs::exists(folder_.temporary_path(2)));
  EXPECT_EXIT(save_with_lease(folder_, at_step(2), 1), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(fs::is_empty(folder_.temporary_path(2)));
}

// The file of its state cannot be written, so it gives up, and would remove the folder.
TEST_F(Checkpoints, ARankWhoseLeaseIsOverRemovesNoFile) {
  const std::string taken = folder_.temporary_path(2) + "/" + state_file(0, 1);
  fs::create_directories(taken);
  constexpr int kLooksOfWriting = 3;  // for the folder and two files
  EXPECT_EXIT(save_with_lease(folder_, at_step(2), kLooksOfWriting), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(fs::exists(taken));
}

// Takes steps until the condition is true on all ranks.
void train_until(Checkpointer& checkpointer, Communicator& world, const std::function<bool()>& condition) {
  const at::Tensor done = at::zeros({1}, at::kLong);
  do {
    checkpointer.advance();
    done.fill_(condition() ? 1 : 0);
    world.all_reduce(done, Reduction::kMin).wait();
  } while (done.item<std::int64_t>() == 0);
}

constexpr Patience kPatient{.wait = Seconds(0.02), .retry = Seconds(20), .hang = Seconds(20)};

TEST_F(FullDisk, ACheckpointIsTriedAgainWhileTrainingGoesOn) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state, kPatient);
    rank.fill(2);
    if (world->rank() == 0) limit(60);
    world->barrier().wait();
    checkpointer.save(at_step(2), true);
    rank.fill(99);  // training goes on
    std::string notice;
    train_until(checkpointer, *world, [&] { return !(notice += checkpointer.take_notice()).empty(); });
    EXPECT_THAT(notice, HasSubstr("the checkpoint of step 2 cannot be written: "));
    EXPECT_THAT(notice, HasSubstr("it is tried again, and training goes on"));
    if (world->rank() == 0) limit(RLIM_INFINITY);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
    EXPECT_EQ(checkpointer.take_notice(), "Checkpoints are written again: the checkpoint of step 2 is complete");
  });
  expect_loads(2, Sharing::kReplicas, 2);
}

TEST_F(FullDisk, ANewerCheckpointReplacesOneThatCannotBeWritten) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state, kPatient);
    if (world->rank() == 0) limit(60);
    world->barrier().wait();
    for (int step = 2; step <= 4; ++step) {
      rank.fill(static_cast<float>(step));
      checkpointer.save(at_step(step), true);
    }
    train_until(checkpointer, *world, [&] { return checkpointer.failed() > 0; });
    if (world->rank() == 0) limit(RLIM_INFINITY);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
  expect_loads(2, Sharing::kReplicas, 4);
}

TEST_F(FullDisk, TheEndDoesNotWaitForLongerThanItMay) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state, {.wait = Seconds(0.02), .retry = Seconds(0.1)});
    if (world->rank() == 1) limit(60);
    world->barrier().wait();
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_THAT(checkpointer.failure(), HasSubstr("File too large"));
    EXPECT_EQ(checkpointer.failed(), 1);
    EXPECT_THAT(checkpointer.take_notice(), HasSubstr("A checkpoint was abandoned: "));
    world->barrier().wait();
    if (world->rank() == 1) limit(RLIM_INFINITY);
    world->barrier().wait();
    checkpointer.save(at_step(3), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
}

// Opening a pipe for writing hangs until it has a reader, like a file of a server that does not answer.
TEST_F(Checkpoints, ADiskThatHangsDelaysTrainingOnce) {
  const std::string pipe = folder_.temporary_path(2) + "/" + weights_file(1, 2);
  fs::create_directories(folder_.temporary_path(2));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state, kPatient);
    for (int step = 2; step <= 5; ++step) {
      rank.fill(static_cast<float>(step));
      checkpointer.save(at_step(step), true);
      checkpointer.advance();
    }
    EXPECT_EQ(checkpointer.written(), 0);
    EXPECT_THAT(checkpointer.take_notice(),
                HasSubstr("the disk is slow: the checkpoint of step 2 is still being written"));
    world->barrier().wait();
    if (world->rank() == 1) {
      const int reader = ::open(pipe.c_str(), O_RDONLY | O_CLOEXEC);  // the writer goes on, and fsync() fails
      fs::remove(pipe);
      ::close(reader);
    }
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "");
  });
  expect_loads(2, Sharing::kReplicas, 5);
}

TEST_F(Checkpoints, AFileThatHangsIsWrittenAgainAfterTheDeadline) {
  const std::string pipe = folder_.temporary_path(2) + "/" + weights_file(1, 2);
  fs::create_directories(folder_.temporary_path(2));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int held = ::open(pipe.c_str(), O_PATH | O_CLOEXEC);  // later, a regular file has this name
  const Seconds long_enough(60);
  ::testing::internal::CaptureStderr();
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    rank.fill(2);
    Checkpointer checkpointer(
        folder_, {}, world, rank.state,
        {.wait = long_enough, .retry = long_enough, .hang = long_enough, .deadline = Seconds(0.3)});
    checkpointer.save(at_step(2), true);
    while (checkpointer.written() == 0 && checkpointer.failed() == 0) checkpointer.advance();
    EXPECT_EQ(checkpointer.failure(), "");
    // There is no notice if the second attempt ends before the ranks have compared the outcomes of the first one.
    EXPECT_THAT(checkpointer.take_notice(),
                AnyOf(IsEmpty(), HasSubstr("Checkpoints are written again: the checkpoint of step 2")));
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it has not been written within 0.3 s"));
  const std::string same = "/proc/self/fd/" + std::to_string(held);
  ::close(::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // lets the thread end
  ::close(held);
  expect_loads(2, Sharing::kReplicas, 2);
}

TEST_F(Checkpoints, ADiskThatHangsAtTheEndIsLeft) {
  const std::string pipe = folder_.temporary_path(2) + "/" + weights_file(1, 2);
  fs::create_directories(folder_.temporary_path(2));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int held = ::open(pipe.c_str(), O_PATH | O_CLOEXEC);  // the name is removed with the checkpoint
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    Checkpointer checkpointer(folder_, {}, world, rank.state,
                              {.wait = Seconds(0.02), .retry = Seconds(1), .hang = Seconds(0.05)});
    checkpointer.save(at_step(2), true);
    checkpointer.settle();
    EXPECT_EQ(checkpointer.failure(), "the disk has not taken it within 0.05 s");
  });
  const std::string same = "/proc/self/fd/" + std::to_string(held);
  ::close(::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // lets the thread end
  ::close(held);
}

}  // namespace
}  // namespace phalanx
