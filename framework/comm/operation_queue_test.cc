#include "framework/comm/operation_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace phalanx {
namespace {

TEST(OperationQueue, RunsNothingBeforeSomebodyWaits) {
  OperationQueue queue;
  bool ran = false;
  Work work = queue.launch([&] { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_FALSE(work.done());
  work.wait();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(work.done());
}

TEST(OperationQueue, RunsInOrderOfLaunchWhateverTheOrderOfWaiting) {
  OperationQueue queue;
  std::vector<int> order;
  Work first = queue.launch([&] { order.push_back(1); });
  Work second = queue.launch([&] { order.push_back(2); });
  Work third = queue.launch([&] { order.push_back(3); });
  second.wait();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_TRUE(first.done());
  EXPECT_FALSE(third.done());
  third.wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(OperationQueue, AnErrorBelongsToItsOwnOperationAndIsThrownOnce) {
  OperationQueue queue;
  Work bad = queue.launch([] { throw std::runtime_error("bad"); });
  Work good = queue.launch([] {});
  EXPECT_NO_THROW(good.wait());
  EXPECT_THROW(bad.wait(), std::runtime_error);
  EXPECT_NO_THROW(bad.wait());
}

TEST(OperationQueue, ADestroyedWorkHasRun) {
  OperationQueue queue;
  bool ran = false;
  {
    Work work = queue.launch([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
  EXPECT_NO_THROW({ Work failing = queue.launch([] { throw std::runtime_error("logged, not thrown"); }); });
}

// K8: an operation owns what it works on until it is complete, and not longer.
TEST(OperationQueue, ReleasesWhatAnOperationOwnsWhenItIsDone) {
  OperationQueue queue;
  auto tensor = std::make_shared<int>(1);
  Work work = queue.launch([tensor] {});
  EXPECT_EQ(tensor.use_count(), 2);
  queue.drain();
  EXPECT_EQ(tensor.use_count(), 1);
}

// Q11: a handle never stands for another operation.
TEST(OperationQueue, AssignmentFinishesTheOldOperation) {
  OperationQueue queue;
  int ran = 0;
  Work work = queue.launch([&] { ran += 1; });
  work = queue.launch([&] { ran += 10; });
  EXPECT_EQ(ran, 1);
  work.wait();
  EXPECT_EQ(ran, 11);
}

TEST(OperationQueue, AnOperationMayHoldTheLastOwnerOfItsQueue) {
  auto queue = std::make_shared<OperationQueue>();
  Work work = queue->launch([queue] {});
  queue.reset();
  EXPECT_NO_THROW(work.wait());
}

TEST(OperationQueue, WaitingForAFinishedOperationDoesNotWaitForLaterOnes) {
  OperationQueue queue;
  std::promise<void> first_ran, may_end;
  Work first = queue.launch([&] { first_ran.set_value(); });
  Work second = queue.launch([ended = may_end.get_future().share()] { ended.wait(); });
  std::jthread runner([&] { second.wait(); });
  first_ran.get_future().wait();
  first.wait();  // would hang if it waited for the second one too
  may_end.set_value();
}

TEST(OperationQueue, ManyThreadsLaunchAndWait) {
  OperationQueue queue;
  int sum = 0;  // written by operations only, one at a time
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) queue.launch([&] { ++sum; }).wait();
      });
    }
  }
  EXPECT_EQ(sum, 2000);
}

}  // namespace
}  // namespace phalanx
