// SPDX-License-Identifier: Apache-2.0
#include "datasets/prefetching_loader.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using ::testing::ElementsAre;

// Batch c of epoch e has input e * 100 + c.
class NumberedLoader final : public Loader {
 public:
  explicit NumberedLoader(std::atomic<int>& gathered, std::int64_t fails_at = -1)
      : gathered_(gathered), fails_at_(fails_at) {}

  std::int64_t batches() const override { return 5; }
  void start_epoch(std::int64_t epoch, std::int64_t cursor) override { epoch_ = epoch, cursor_ = cursor; }
  bool next(Batch& batch) override {
    if (cursor_ == batches()) return false;
    if (cursor_ == std::exchange(fails_at_, cursor_ == fails_at_ ? -1 : fails_at_)) throw std::runtime_error("torn");
    if (batch.inputs.empty() || batch.inputs[0].use_count() > 1) batch.inputs = {at::empty({1})};
    batch.inputs[0].fill_(static_cast<double>(epoch_ * 100 + cursor_));
    batch.valid = ++cursor_;
    ++gathered_;
    return true;
  }

 private:
  std::atomic<int>& gathered_;
  std::int64_t fails_at_, epoch_ = 0, cursor_ = 0;
};

std::vector<int> rest_of(Loader& loader) {
  std::vector<int> seen;
  for (Batch batch; loader.next(batch);) seen.push_back(batch.inputs[0].item<int>());
  return seen;
}

class Prefetching : public ::testing::TestWithParam<int> {
 protected:
  std::atomic<int> gathered_{0};
  std::unique_ptr<Loader> make(std::int64_t fails_at = -1) {
    return make_prefetching(std::make_unique<NumberedLoader>(gathered_, fails_at), GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Ahead, Prefetching, ::testing::Values(1, 2, 9));

TEST_P(Prefetching, GivesTheSameBatchesInTheSameOrder) {
  const auto loader = make();
  EXPECT_EQ(loader->batches(), 5);
  EXPECT_THAT(rest_of(*loader), ElementsAre(0, 1, 2, 3, 4)) << "without a start it stands at epoch 0";
  EXPECT_THAT(rest_of(*loader), ElementsAre());
  for (int epoch = 1; epoch < 30; ++epoch) {
    loader->start_epoch(epoch);
    EXPECT_THAT(rest_of(*loader),
                ElementsAre(epoch * 100, epoch * 100 + 1, epoch * 100 + 2, epoch * 100 + 3, epoch * 100 + 4));
  }
}

// Returns a batch that holds the number of threads that its dataset may read with.
class ThreadsLoader final : public Loader {
 public:
  std::int64_t batches() const override { return 1; }
  void start_epoch(std::int64_t, std::int64_t) override {}
  bool next(Batch& batch) override {
    batch.inputs = {at::full({1}, at::get_num_threads())};
    return true;
  }
};

TEST(PrefetchingThreads, AreAsManyAsConfiguredOrAsTheCallerHas) {
  const auto threads = [](int asked) {
    Batch batch;
    make_prefetching(std::make_unique<ThreadsLoader>(), 1, asked)->next(batch);
    return batch.inputs[0].item<int>();
  };
  EXPECT_EQ(threads(3), 3);
  EXPECT_EQ(threads(0), at::get_num_threads());
}

TEST_P(Prefetching, StartsAnywhereEvenInTheMiddleOfAnEpoch) {
  const auto loader = make();
  for (int turn = 0; turn < 200; ++turn) {
    const int cursor = turn % 6;
    loader->start_epoch(turn, cursor);
    Batch batch;
    ASSERT_EQ(loader->next(batch), cursor < 5);
    if (cursor < 5) {
      ASSERT_EQ(batch.inputs[0].item<int>(), turn * 100 + cursor) << "nothing of the epoch before";
    }
  }
}

TEST_P(Prefetching, GathersWhileTheCallerIsAtWork) {
  const auto loader = make();
  Batch batch;
  ASSERT_TRUE(loader->next(batch));
  const int expected = std::min(1 + GetParam(), 5);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (gathered_ < expected && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(gathered_, expected) << "as many as it may, and no more";
  EXPECT_EQ(batch.inputs[0].item<int>(), 0) << "the caller's batch is the caller's";
}

// Every batch has four bytes.
TEST(PrefetchingMemory, IsBounded) {
  for (const auto& [most, expected] : {std::pair{1, 2}, {8, 3}, {11, 3}, {12, 4}, {0, 5}}) {
    std::atomic<int> gathered{0};
    const auto loader = make_prefetching(std::make_unique<NumberedLoader>(gathered), 9, 1, most);
    Batch batch;
    ASSERT_TRUE(loader->next(batch));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (gathered < expected && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // enough time to gather one too many
    EXPECT_EQ(gathered, expected) << most << " bytes: those that are ready, and the caller's";
    EXPECT_THAT(rest_of(*loader), ElementsAre(1, 2, 3, 4));
  }
}

TEST_P(Prefetching, ErrorsArriveInOrderAndGatheringCanBeRetried) {
  const auto loader = make(2);
  Batch batch;
  ASSERT_TRUE(loader->next(batch));
  ASSERT_TRUE(loader->next(batch));
  EXPECT_THROW(loader->next(batch), std::runtime_error);
  EXPECT_THAT(rest_of(*loader), ElementsAre(2, 3, 4));
}

TEST_P(Prefetching, EndsWithoutARequest) { make(); }

TEST(PrefetchingLoader, RefusesToPrefetchNothing) {
  std::atomic<int> gathered{0};
  EXPECT_THROW(make_prefetching(std::make_unique<NumberedLoader>(gathered), 0), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
