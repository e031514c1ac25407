// SPDX-License-Identifier: Apache-2.0
// The suites of survivors in framework/testing have the tests of all backends.
#include "framework/backends/shared_memory/survivors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/communicator.h"
#include "framework/base/error.h"
#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {
namespace {

// Stops the first rank that counts the votes: it is the one that creates the memory of the new group.
struct Stop {
  std::atomic<bool> armed{false};
  std::latch continued{1};
};

class StoppedFabric final : public Fabric {
 public:
  explicit StoppedFabric(Stop& stop) : stop_(stop) {}

  Block create(std::size_t bytes) override {
    if (stop_.armed.exchange(false)) stop_.continued.wait();
    return heap_.create(bytes);
  }
  std::shared_ptr<void> open(const Handle& handle) override { return heap_.open(handle); }
  void reserve(const Handle& handle, std::size_t offset, std::size_t bytes) override {
    heap_.reserve(handle, offset, bytes);
  }
  void release() override { heap_.release(); }
  bool reaches_everything() const override { return heap_.reaches_everything(); }
  bool fetches() const override { return heap_.fetches(); }
  void fetch(int rank, std::byte* to, const std::byte* from, std::size_t bytes) override {
    heap_.fetch(rank, to, from, bytes);
  }
  bool alive(int rank) override { return heap_.alive(rank); }
  std::unique_ptr<Fabric> subset(std::span<const int> ranks) override { return heap_.subset(ranks); }

 private:
  Stop& stop_;
  inproc::HeapFabric heap_;
};

TEST(SharedMemorySurvivors, ContinueWithoutTheRankThatStoppedWhileItCountedTheVotes) {
  constexpr int kRanks = 3;
  const auto store = make_hash_store(Seconds(60));
  Stop stop;
  std::latch connected{kRanks}, others_are_done{kRanks - 1};
  std::vector<std::optional<int>> sizes(kRanks);  // of the new groups
  std::vector<std::optional<CommError::Kind>> errors(kRanks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        const ConnectOptions options{.rank_info = {rank, kRanks, rank, kRanks}, .store = store, .timeout = Seconds(1)};
        const auto world = connect("world", options, std::make_unique<StoppedFabric>(stop));
        if (rank == 0) stop.armed = true;
        connected.arrive_and_wait();
        try {
          const auto survivors = world->shrink();
          sizes[rank] = survivors->size();
        } catch (const CommError& error) {
          errors[rank] = error.kind();
        }
        if (!stop.continued.try_wait()) others_are_done.count_down();
      });
    }
    others_are_done.wait();
    stop.continued.count_down();
  }
  int left = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (sizes[rank]) {
      EXPECT_EQ(*sizes[rank], kRanks - 1);
      ++left;
    } else {
      EXPECT_EQ(errors[rank], CommError::Kind::kPeerLost);
    }
  }
  EXPECT_EQ(left, kRanks - 1);
}

}  // namespace
}  // namespace phalanx::shared_memory
