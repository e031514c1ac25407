// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/stall_watch.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"
#include "launch/failure/failure_report.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using testing::becomes_true;
using testing::run_ranks;

// Collects the lines that the ranks of a job print on its console.
class Console {
 public:
  void tell(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool has(const std::string& part) const {
    return std::ranges::any_of(lines(), [&](const auto& line) { return line.find(part) != std::string::npos; });
  }
  bool gets(const std::string& part) const {
    return becomes_true([&] { return has(part); }, 60);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

class StallWatches : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  StallWatches() {
    for (int rank = 0; rank < kRanks; ++rank) std::ofstream(log_path(scratch_.folder(), rank)) << "here\n";
  }
  ~StallWatches() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(testing::text_of(note_of(rank)), "") << "a note is left";
    }
  }

  std::string note_of(int rank) const { return scratch_.path("rank" + std::to_string(rank) + ".waiting"); }

  void watched(const std::function<void(const CommunicatorPtr&)>& body) {
    run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      const StallWatch watch(*world, {.log_folder = scratch_.folder(),
                                      .warn_after = Seconds(0.4),
                                      .print = [this](std::string_view line) { console_.tell(line); }});
      body(world);
    });
  }

  testing::Scratch scratch_;
  Console console_;
};

TEST_F(StallWatches, TellWhichRankWaitsForWhichAndWhenItContinues) {
  watched([&](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      EXPECT_TRUE(console_.gets(" s in barrier #1 of world for rank"))
          << "no rank has reported that it waits for this one";
      EXPECT_FALSE(console_.has("continues after"));
    }
    world->barrier().wait();
    EXPECT_TRUE(console_.gets("continues after ")) << "must be told before the watch of the rank ends";
  });
}

TEST_F(StallWatches, ContinueOnAFaultyFileSystem) {
  // Accessing a link to itself is an error, like accessing any file when a file server is unreachable.
  const std::string log = log_path(scratch_.folder(), 1);
  std::filesystem::remove(log);
  std::filesystem::create_symlink(log, log);
  watched([&](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      EXPECT_TRUE(console_.gets(" s in barrier #1 of world for rank"))
          << "no rank has reported that it waits for this one";
    }
    world->barrier().wait();
  });
}

TEST_F(StallWatches, AreSilentAboutMessagesThatAreNotWaitedForYet) {
  std::barrier all_have_looked(kRanks);
  watched([&](const CommunicatorPtr& world) {
    at::Tensor tensor = at::zeros({4});
    const int size = world->size();
    Work received = world->recv(tensor, (world->rank() + 1) % size);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the time of an evaluation
    EXPECT_EQ(console_.lines(), std::vector<std::string>{});
    all_have_looked.arrive_and_wait();
    Work sent = world->send(at::ones({4}), (world->rank() + size - 1) % size);
    received.wait();
    sent.wait();
  });
}

TEST_F(StallWatches, AreSilentAboutAnOperationThatHasFailed) {
  watched([&](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      EXPECT_TRUE(console_.gets(" s in barrier #1 of world for rank"))
          << "no rank has reported that it waits for this one";
      return;  // leaves the others
    }
    EXPECT_THROW(world->barrier().wait(), CommError);
    EXPECT_TRUE(becomes_true([&] { return testing::text_of(note_of(world->rank())).empty(); }, 60));
  });
  EXPECT_FALSE(console_.has("continues"));
}

}  // namespace
}  // namespace phalanx
