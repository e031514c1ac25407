// SPDX-License-Identifier: Apache-2.0
// The plug-in's groups of NCCL when ranks are late or lost, and when NCCL or CUDA report errors.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/device_graph.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_cuda/plugin_suite.h"
#include "framework/testing/fake_cuda/runtime.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST_F(Plugin, LaunchingAndWaitingDoNotBlockTheHostWhilePeersAreLate) {
  constexpr auto kLate = milliseconds(400);
  run(3, Seconds(30), [&](const Rank& rank) {
    if (rank.host->rank() == 2) std::this_thread::sleep_for(kLate);
    const at::Tensor tensor = rank.full(1000, rank.host->rank());
    const auto begin = Clock::now();
    Work work = rank.group->all_reduce(tensor, Reduction::kSum);
    work.wait();
    const at::Tensor later = tensor + 1;  // on the stream, which waits
    EXPECT_LT(Clock::now() - begin, kLate / 2);
    EXPECT_TRUE(at::equal(later.to(at::kCPU), at::full({1000}, 4.0)));
  });
}

TEST_F(Plugin, AMeanIsDividedAfterItHasBeenSummed) {
  run(3, Seconds(30), [](const Rank& rank) {
    for (int i = 0; i < 30; ++i) {
      const at::Tensor input = rank.full(12, 3.0 + rank.host->rank()), part = rank.full(4, 0);
      rank.group->reduce_scatter(part, input, Reduction::kMean).wait();
      ASSERT_TRUE(at::equal(part.to(at::kCPU), at::full({4}, 4.0))) << i;
      rank.group->all_reduce(input, Reduction::kMean).wait();
      ASSERT_TRUE(at::equal(input.to(at::kCPU), at::full({12}, 4.0))) << i;
    }
  });
}

TEST_F(Plugin, EqualPartsUseTheOperationsThatNcclHasForThem) {
  const auto calls = [] { return std::pair(nccl_calls("ncclAllGather"), nccl_calls("ncclReduceScatter")); };
  const auto [gathers, scatters] = calls();
  run(3, Seconds(30), [](const Rank& rank) {
    const std::vector<std::int64_t> counts{5, 5, 5};
    const at::Tensor all = rank.full(15, 1), part = rank.full(5, rank.host->rank());
    rank.group->reduce_scatter(part, all, Reduction::kSum, counts).wait();
    rank.group->all_gather(all, part, counts).wait();
    EXPECT_TRUE(at::equal(all.to(at::kCPU), at::full({15}, 3.0)));
  });
  EXPECT_EQ(calls(), std::pair(gathers + 3, scatters + 3));
}

TEST_F(Plugin, AnOperationOwnsItsTensorsUntilItIsWaitedFor) {
  run(2, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(10, 1);
    Work work = rank.group->all_reduce(tensor, Reduction::kSum);
    EXPECT_GT(tensor.use_count(), 1U);
    work.wait();
    EXPECT_EQ(tensor.use_count(), 1U);
  });
}

// The memory of a tensor that is freed after another stream has waited must not be reused by its own stream at once.
TEST_F(Plugin, AnOperationThatAnotherStreamWaitsForStillProtectsItsTensors) {
  run(2, Seconds(30), [](const Rank& rank) {
    const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
    at::Tensor tensor = rank.full(1000, 1);
    Work work = rank.group->all_reduce(tensor, Reduction::kSum);
    {
      const c10::StreamGuard other(devices.getStreamFromGlobalPool(rank.device));
      work.wait();
    }
    tensor.reset();
    EXPECT_NO_THROW(rank.full(1000, 2));
    rank.synchronize_device();
  });
}

TEST_F(Plugin, ARankThatNeverComesEndsTheGroupAfterTheTimeout) {
  run(2, Seconds(0.3), [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      const at::Tensor tensor = rank.full(10, 1);
      Work work = rank.group->all_reduce(tensor, Reduction::kSum);
      const auto error = error_of([&] { work.synchronize(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), CommError::Kind::kTimeout);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("all_reduce"), HasSubstr("rank 0 of 2"), HasSubstr("did not come")));
      rank.synchronize_device();  // the device is not blocked
      Work next = rank.group->all_reduce(tensor, Reduction::kSum);
      EXPECT_TRUE(error_of([&] { next.wait(); }));
    }
    rank.host->barrier().wait();
  });
}

// The watch for stalls looks there (launch/stall).
TEST_F(Plugin, OperationsThatWaitForPeersAreInTheRecordOfTheWorld) {
  run(2, Seconds(30), [](const Rank& rank) {
    const auto running = [&] {
      const auto records = rank.host->recorder().records();
      return std::ranges::count_if(records, [](const FlightRecorder::Record& record) {
        return record.call.op == Op::kAllReduce && record.state == FlightRecorder::State::kRunning;
      });
    };
    const at::Tensor tensor = rank.full(10, 1);
    if (rank.host->rank() == 1) rank.host->barrier().wait();
    Work work = rank.group->all_reduce(tensor, Reduction::kSum);
    if (rank.host->rank() == 0) {
      EXPECT_EQ(running(), 1);
      rank.host->barrier().wait();
    }
    work.synchronize();
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (running() > 0 && Clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(running(), 0);
  });
}

TEST_F(Plugin, AnAsynchronousErrorOfNcclEndsWhatIsInFlight) {
  run(2, Seconds(30), [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      const at::Tensor tensor = rank.full(10, 1);
      Work work = rank.group->all_reduce(tensor, Reduction::kSum);
      break_nccl(0, ncclRemoteError);
      const auto error = error_of([&] { work.synchronize(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), CommError::Kind::kPeerLost);
      EXPECT_THAT(error->what(), HasSubstr("remote process exited"));
      rank.synchronize_device();
    }
    rank.host->barrier().wait();
  });
}

// Kernels may write to the tensors until then. The test itself has none of them any more.
TEST_F(Plugin, TensorsOfOperationsInFlightLiveUntilTheAbortHasEnded) {
  const long before = nccl_freed_early();
  run(2, Seconds(30), [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      at::Tensor tensor = rank.full(10, 1);
      const c10::weak_intrusive_ptr<c10::TensorImpl> kept(tensor.getIntrusivePtr());
      const auto is_freed_within = [&](milliseconds time) {
        const auto end = Clock::now() + time;
        while (!kept.expired() && Clock::now() < end) std::this_thread::yield();
        return kept.expired();
      };
      Work work = rank.group->all_reduce(tensor, Reduction::kSum);
      tensor.reset();
      hold_nccl_aborts(true);
      break_nccl(0, ncclRemoteError);
      EXPECT_TRUE(error_of([&] { work.synchronize(); }));
      EXPECT_FALSE(is_freed_within(milliseconds(200))) << "the thread that watches the operations has freed it";
      hold_nccl_aborts(false);
      EXPECT_TRUE(is_freed_within(std::chrono::seconds(20)));
    }
    rank.host->barrier().wait();
  });
  EXPECT_EQ(nccl_freed_early(), before);
}

TEST_F(Plugin, AnErrorOfCudaBecomesTheErrorOfTheGroup) {
  run(2, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(10, 1);
    rank.host->barrier().wait();
    if (rank.host->rank() == 0) {
      Work work = rank.group->all_reduce(tensor, Reduction::kSum);
      break_cuda(cudaErrorLaunchFailure);
      const auto error = error_of([&] { work.synchronize(); });
      ASSERT_TRUE(error);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("all_reduce"), HasSubstr("unspecified launch failure"),
                                       ::testing::Not(HasSubstr("\n"))));
      break_cuda(cudaSuccess);
    }
    rank.host->barrier().wait();
  });
}

// The thread that watches the operations is the last that has them.
TEST_F(Plugin, AnErrorOfCudaDoesNotEndTheProcessWhenOperationsAreFreed) {
  run(2, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(10, 1);
    rank.host->barrier().wait();
    if (rank.host->rank() == 0) {
      rank.group->all_reduce(tensor, Reduction::kSum).wait();
      break_cuda(cudaErrorLaunchFailure);
      const auto end = Clock::now() + std::chrono::seconds(20);
      std::optional<CommError> error;
      while (!error && Clock::now() < end) {
        error = error_of([&] { rank.group->all_reduce(tensor, Reduction::kSum).wait(); });
      }
      EXPECT_TRUE(error);
      break_cuda(cudaSuccess);
    }
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, AWarningNamesTwoRanksThatShareADeviceIfAllThenUseTheMemoryOfTheirHosts) {
  share_devices(3);
  refuse_ipc(true);
  ::testing::internal::CaptureStderr();
  run(4, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(5, 1);
    rank.group->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 4);
  });
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("ranks 0 and 3 share one device, Fake GPU, but NCCL needs one for each rank, so all 4 ranks "
                      "exchange tensors through the memory of their hosts"),
            HasSubstr("WARNING")));
}

TEST_F(Plugin, RanksThatShareADeviceDoWithoutNccl) {
  share_devices(2);
  const long before = nccl_calls("ncclAllReduce");
  run(4, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(5, 1);
    rank.group->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 4);
  });
  EXPECT_EQ(nccl_calls("ncclAllReduce"), before);
}

TEST_F(Plugin, TheBackendNcclRefusesRanksThatShareADevice) {
  share_devices(2);
  const StorePtr store = make_hash_store(Seconds(30));
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto choice = config::load_as<Backends::Choice>("backend", "{name: nccl, host: inproc}", "test");
      const RankInfo info{.rank = rank, .size = 3, .local_rank = rank, .local_size = 3};
      EXPECT_THAT([&] { choice.make(ConnectOptions{info, store, Seconds(30)}); },
                  ThrowsMessage<ConfigError>(HasSubstr("backend nccl: ranks 0 and 2 share one device, Fake GPU")));
    });
  }
}

TEST_F(Plugin, MemoryThatIsMissingIsAnErrorWithBothSizes) {
  run(2, Seconds(30), [](const Rank& rank) {
    rank.host->barrier().wait();
    limit_fake_memory(1 << 20);
    const auto error =
        error_of([&] { (void)rank.group->allocate({1 << 20}, at::device(rank.device).dtype(at::kFloat)); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(), AllOf(HasSubstr("allocate of 4194304 bytes"), HasSubstr("free of 1048576 bytes")));
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, OperationsInAGraphCommunicateInEachReplay) {
  run(2, Seconds(30), [](const Rank& rank) {
    // The graph of the fake device records all threads, so one rank records after the other.
    FakeGraph graph;
    const at::Tensor tensor = rank.full(100, 1);
    for (int recorder = 0; recorder < 2; ++recorder) {
      rank.host->barrier().wait();
      if (rank.host->rank() != recorder) continue;
      graph.capture_begin();
      rank.group->all_reduce(tensor, Reduction::kSum).wait();
      graph.capture_end();
    }
    rank.host->barrier().wait();
    EXPECT_EQ(tensor[0].item<float>(), 1);
    for (const float expected : {2, 4, 8}) {
      graph.replay();
      EXPECT_EQ(tensor[99].item<float>(), expected);
    }
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, MemoryIsNotAllocatedWhileAGraphIsRecorded) {
  run(2, Seconds(30), [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      FakeGraph graph;
      graph.capture_begin();
      const auto error = error_of([&] { (void)rank.group->allocate({10}, at::device(rank.device).dtype(at::kFloat)); });
      graph.capture_end();
      ASSERT_TRUE(error);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("allocate of 40 bytes"), HasSubstr("unhandled cuda error")));
    }
    rank.host->barrier().wait();
  });
}

// Records an all_reduce of the tensor. The graph of the fake device records all threads, so one rank records after the
// other.
std::unique_ptr<DeviceGraph> all_reduce_in_graph(const Rank& rank, const at::Tensor& tensor) {
  auto graph = make_device_graph(c10::kCUDA);
  for (int recorder = 0; recorder < 2; ++recorder) {
    rank.host->barrier().wait();
    if (rank.host->rank() != recorder) continue;
    graph->capture_begin();
    rank.group->all_reduce(tensor, Reduction::kSum).wait();
    graph->capture_end();
  }
  rank.host->barrier().wait();
  return graph;
}

TEST_F(Plugin, AReplayThatWaitsForALostRankEndsTheGroupAfterTheTimeout) {
  run(2, Seconds(3), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(10, 1);
    const auto graph = all_reduce_in_graph(rank, tensor);
    graph->replay();
    EXPECT_EQ(tensor[9].item<float>(), 2);
    if (rank.host->rank() == 0) {
      graph->replay();
      rank.synchronize_device();  // until the group aborts
      const auto error = error_of([&] { graph->replay(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), CommError::Kind::kTimeout);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("a replay of a graph, from all_reduce(sum) of 10 Float #2 to #2 of"),
                                       HasSubstr("rank 0 of 2"), HasSubstr("did not come")));
      // NCCL is still aborting, because the graph exists.
      const auto begin = Clock::now();
      Work next = rank.group->all_reduce(tensor, Reduction::kSum);
      EXPECT_TRUE(error_of([&] { next.wait(); }));
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5)) << "it does not wait for NCCL";
    }
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, ReplaysAndNotTheRecordingAreInTheRecordOfTheWorld) {
  run(2, Seconds(30), [](const Rank& rank) {
    const at::Tensor tensor = rank.full(10, 1);
    const auto graph = all_reduce_in_graph(rank, tensor);
    const auto ended = [&] {
      const auto records = rank.host->recorder().records();
      return std::ranges::count_if(records, [](const FlightRecorder::Record& record) {
        return record.call.op == Op::kAllReduce && record.state == FlightRecorder::State::kDone;
      });
    };
    EXPECT_EQ(ended(), 0);
    for (int i = 0; i < 3; ++i) graph->replay();
    EXPECT_EQ(tensor[9].item<float>(), 8);
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (ended() < 3 && Clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(ended(), 3);
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, SplittingWaitsForOutstandingOperations) {
  run(3, Seconds(30), [](const Rank& rank) {
    if (rank.host->rank() == 2) std::this_thread::sleep_for(milliseconds(100));
    const at::Tensor tensor = rank.full(10, 1), other = rank.full(10, 2);
    Work work = rank.group->all_reduce(tensor, Reduction::kSum);
    const auto child = rank.group->split(0, -rank.host->rank());
    EXPECT_EQ(child->rank(), 2 - rank.host->rank());
    child->all_reduce(other, Reduction::kSum).wait();
    work.wait();
    EXPECT_EQ(tensor[9].item<float>() + other[9].item<float>(), 9);
  });
}

TEST_F(Plugin, SplitsAndTheirParentsWorkBesideEachOther) {
  run(4, Seconds(30), [](const Rank& rank) {
    const auto half = rank.group->split(rank.host->rank() % 2, rank.host->rank());
    const at::Tensor all = rank.full(7, 1), some = rank.full(9, 1);
    Work first = rank.group->all_reduce(all, Reduction::kSum), second = half->all_reduce(some, Reduction::kSum);
    first.wait();
    second.wait();
    EXPECT_EQ(all[6].item<float>(), 4);
    EXPECT_EQ(some[8].item<float>(), 2);
  });
}

}  // namespace
}  // namespace phalanx::testing
