// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/operation_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/operations/wait_both.h"

namespace phalanx {
namespace {

using State = FlightRecorder::State;

const Call kCall{.elements = 3, .op = Op::kAllReduce, .dtype = c10::kFloat};

class Operations : public ::testing::Test {
 protected:
  template <class Run>
  Work launch(Run run) {
    return queue_.launch(*group_, kCall, std::move(run));
  }

  // Launches an operation that records when it begins.
  Work note(int number) {
    return launch([this, number] { order_.push_back(number); });
  }

  OperationQueue queue_;
  std::shared_ptr<FlightRecorder::Group> group_ = queue_.recorder().add_group("world");
  std::vector<int> order_;  // written by operations only, one at a time
};

TEST_F(Operations, RunOnlyOnceTheyAreWaitedFor) {
  Work work = note(1);
  EXPECT_TRUE(order_.empty());
  EXPECT_FALSE(work.done());
  work.wait();
  EXPECT_EQ(order_, std::vector{1});
  EXPECT_TRUE(work.done());
}

TEST_F(Operations, RunInOrderOfLaunchWhateverTheOrderOfWaiting) {
  Work first = note(1), second = note(2), third = note(3);
  second.wait();
  EXPECT_EQ(order_, (std::vector{1, 2}));
  EXPECT_TRUE(first.done());
  EXPECT_FALSE(third.done());
  third.wait();
  EXPECT_EQ(order_, (std::vector{1, 2, 3}));
}

TEST_F(Operations, KeepTheirErrorsAndThrowThemOnce) {
  Work bad = launch([] { throw std::runtime_error("bad"); });
  Work good = launch([] {});
  EXPECT_NO_THROW(good.wait());
  EXPECT_THROW(bad.wait(), std::runtime_error);
  EXPECT_NO_THROW(bad.wait());
}

TEST_F(Operations, RunAtTheLatestWhenTheirWorkIsDestroyed) {
  {
    Work work = note(1);
  }
  EXPECT_EQ(order_, std::vector{1});
  EXPECT_NO_THROW({ Work failing = launch([] { throw std::runtime_error("logged, not thrown"); }); });
}

// Launches an operation that can leave its group, and throws an exception while its Work is there.
template <class Launch>
void interrupt(const Launch& launch) {
  try {
    const Work work = launch();
    throw std::runtime_error("interrupted");
  } catch (const std::runtime_error&) {
  }
}

TEST_F(Operations, LeaveTheirGroupInsteadIfAnExceptionDestroysTheirWork) {
  int left = 0;
  auto tensor = std::make_shared<int>(1);
  interrupt([&] {
    return queue_.launch(
        *group_, kCall, [this, tensor] { order_.push_back(1); },
        [&] {
          EXPECT_EQ(tensor.use_count(), 2) << "what the operation owns is still there";
          ++left;
        });
  });
  EXPECT_EQ(left, 1);
  EXPECT_EQ(tensor.use_count(), 1);
  EXPECT_EQ(queue_.recorder().records().at(0).state, State::kFailed);
  note(2).wait();
  queue_.drain();
  EXPECT_EQ(order_, std::vector{2});
  EXPECT_EQ(left, 1);
}

TEST_F(Operations, RunIfAnExceptionDestroysTheirWorkAndTheyCannotLeave) {
  interrupt([&] { return note(1); });
  EXPECT_EQ(order_, std::vector{1});
}

TEST_F(Operations, LeaveNothingIfTheyHaveRunWhenAnExceptionDestroysTheirWork) {
  interrupt([&] {
    Work work = queue_.launch(*group_, kCall, [this] { order_.push_back(1); }, [] { ADD_FAILURE(); });
    queue_.drain();
    return work;
  });
  EXPECT_EQ(order_, std::vector{1});
}

TEST_F(Operations, OfAPairAreBothRunIfTheFirstFails) {
  Work first = launch([] { throw std::runtime_error("first"); });
  Work second = queue_.launch(*group_, kCall, [this] { order_.push_back(2); }, [] { ADD_FAILURE(); });
  EXPECT_THROW(wait_both(first, second), std::runtime_error);
  EXPECT_EQ(order_, std::vector{2});
}

// An operation owns the objects it works on until it is complete, and no longer.
TEST_F(Operations, ReleaseWhatTheyOwnWhenTheyAreDone) {
  auto tensor = std::make_shared<int>(1);
  Work work = launch([tensor] {});
  EXPECT_EQ(tensor.use_count(), 2);
  queue_.drain();
  EXPECT_EQ(tensor.use_count(), 1);
}

// A handle never refers to another operation.
TEST_F(Operations, AreFinishedWhenTheirWorkIsReplaced) {
  Work work = note(1);
  work = note(2);
  EXPECT_EQ(order_, std::vector{1});
  work.wait();
  EXPECT_EQ(order_, (std::vector{1, 2}));
}

TEST_F(Operations, MayHoldTheLastOwnerOfTheirQueue) {
  auto queue = std::make_shared<OperationQueue>();
  Work work = queue->launch(*queue->recorder().add_group("world"), kCall, [queue] {});
  queue.reset();
  EXPECT_NO_THROW(work.wait());
}

TEST_F(Operations, FinishedOnesDoNotWaitForLaterOnes) {
  std::promise<void> first_ran, may_end;
  Work first = launch([&] { first_ran.set_value(); });
  Work second = launch([ended = may_end.get_future().share()] { ended.wait(); });
  std::jthread runner([&] { second.wait(); });
  first_ran.get_future().wait();
  first.wait();  // would hang if it waited for the second one too
  may_end.set_value();
}

TEST_F(Operations, LaunchedByManyThreadsRunOnceEach) {
  constexpr int kThreads = 4, kEach = 500;
  std::vector<int> runs(kThreads * kEach);  // written by operations only
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::vector<Work> later;
        for (int i = 0; i < kEach; ++i) {
          Work work = launch([&runs, at = t * kEach + i] { ++runs[at]; });
          if (i % 3 == 0) work.wait();
          later.push_back(std::move(work));
        }
      });
    }
  }
  EXPECT_EQ(runs, std::vector<int>(kThreads * kEach, 1));
}

// ---- operations that launch operations

TEST_F(Operations, RunNestedOnesInTheirThreadBeforeAnythingFromOutside) {
  std::thread::id outer_thread, inner_thread;
  Work outer = launch([&] {
    outer_thread = std::this_thread::get_id();
    order_.push_back(1);
    Work inner = launch([&] {
      inner_thread = std::this_thread::get_id();
      order_.push_back(2);
    });
    EXPECT_FALSE(inner.done()) << "it runs when it is waited for";
    inner.wait();
    order_.push_back(3);
  });
  Work later = note(4);
  std::jthread([&] { later.wait(); }).join();
  EXPECT_EQ(order_, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(inner_thread, outer_thread);
  EXPECT_NE(inner_thread, std::this_thread::get_id()) << "the thread that waits first runs them";
}

TEST_F(Operations, RunNestedOnesInOrderOfLaunch) {
  Work outer = launch([&] {
    Work first = note(1), second = note(2), third = note(3);
    third.wait();
    EXPECT_TRUE(first.done());
  });
  Work later = note(4);
  later.wait();
  EXPECT_EQ(order_, (std::vector{1, 2, 3, 4}));
}

TEST_F(Operations, MayNestTwice) {
  Work outer = launch([&] {
    order_.push_back(1);
    Work middle = launch([&] {
      order_.push_back(2);
      note(3).wait();
      order_.push_back(4);
    });
    middle.wait();
    order_.push_back(5);
  });
  Work later = note(6);
  later.wait();
  EXPECT_EQ(order_, (std::vector{1, 2, 3, 4, 5, 6}));
}

// Operations that an inner operation launches are part of it, so they run before its next sibling.
TEST_F(Operations, NestedOnesEndBeforeTheirSiblingsBegin) {
  Work outer = launch([&] {
    Work first = launch([&] {
      order_.push_back(1);
      note(2).wait();
      order_.push_back(3);
    });
    Work second = note(4);
    second.wait();
  });
  outer.wait();
  EXPECT_EQ(order_, (std::vector{1, 2, 3, 4}));
}

TEST_F(Operations, RunNestedOnesThatWereNotWaitedForBeforeLaterOnes) {
  Work inner;
  Work outer = launch([&] { inner = note(1); });
  Work later = note(2);
  later.wait();
  EXPECT_EQ(order_, (std::vector{1, 2}));
  EXPECT_TRUE(inner.done());
}

TEST_F(Operations, NestedOnesKeepTheirErrorsToo) {
  Work outer = launch([&] {
    Work bad = launch([] { throw std::runtime_error("inner"); });
    EXPECT_THROW(bad.wait(), std::runtime_error);
    order_.push_back(1);
  });
  EXPECT_NO_THROW(outer.wait());
  Work failing = launch([&] { launch([] { throw std::runtime_error("inner"); }).wait(); });
  EXPECT_THROW(failing.wait(), std::runtime_error);
  EXPECT_EQ(order_, std::vector{1});
}

// ---- the progress thread

TEST_F(Operations, RunInAProgressThreadWithoutWait) {
  EXPECT_FALSE(queue_.has_progress_thread());
  queue_.start_progress_thread();
  EXPECT_TRUE(queue_.has_progress_thread());
  std::promise<std::thread::id> ran;
  Work work = launch([&] { ran.set_value(std::this_thread::get_id()); });
  auto thread = ran.get_future();
  ASSERT_EQ(thread.wait_for(std::chrono::seconds(30)), std::future_status::ready) << "no thread waits for the work";
  EXPECT_NE(thread.get(), std::this_thread::get_id());
}

TEST_F(Operations, WakeAProgressThreadThatSleeps) {
  queue_.start_progress_thread();
  for (int i = 0; i < 20; ++i) {
    std::promise<void> ran;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // long enough for it to sleep at times
    Work work = launch([&] { ran.set_value(); });
    ASSERT_EQ(ran.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }
}

TEST_F(Operations, LaunchedByManyThreadsRunOnceEachWithAProgressThread) {
  queue_.start_progress_thread();
  int runs = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) launch([&] { ++runs; }).wait();
      });
    }
  }
  EXPECT_EQ(runs, 2000);
}

TEST_F(Operations, MayHoldTheLastOwnerOfAQueueWithAProgressThread) {
  for (int i = 0; i < 20; ++i) {
    auto queue = std::make_shared<OperationQueue>();
    queue->start_progress_thread();
    auto group = queue->recorder().add_group("world");
    std::promise<void> may_end;
    auto& launcher = *queue;
    Work work = launcher.launch(*group, kCall, [queue, ended = may_end.get_future().share()] { ended.wait(); });
    queue.reset();
    may_end.set_value();
    EXPECT_NO_THROW(work.wait());
  }
}

// ---- the recorder

TEST_F(Operations, AreRecordedInEachState) {
  const auto states = [&] {
    std::vector<State> all;
    for (const auto& record : queue_.recorder().records()) all.push_back(record.state);
    return all;
  };
  std::vector<State> meanwhile;
  Work good = launch([&] { meanwhile = states(); });
  Work bad = launch([] { throw std::runtime_error("bad"); });
  Work later = note(1);
  EXPECT_EQ(states(), (std::vector{State::kLaunched, State::kLaunched, State::kLaunched}));
  EXPECT_THROW(bad.wait(), std::runtime_error);
  EXPECT_EQ(meanwhile, (std::vector{State::kRunning, State::kLaunched, State::kLaunched}));
  EXPECT_EQ(states(), (std::vector{State::kDone, State::kFailed, State::kLaunched}));
  later.wait();
  const auto record = queue_.recorder().records().back();
  EXPECT_EQ(record.sequence, 3u);
  EXPECT_EQ(record.group, "world");
  EXPECT_EQ(record.call, kCall);
}

}  // namespace
}  // namespace phalanx
