// SPDX-License-Identifier: Apache-2.0
// The fake NCCL keeps to what the real one documents and does.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <barrier>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_device/graph.h"

namespace phalanx::testing {
namespace {

using std::chrono::milliseconds;

constexpr auto kDeadline = std::chrono::seconds(20);

// Returns the state of the communicator once it is another one than ncclInProgress.
ncclResult_t settled(ncclComm_t comm) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress && std::chrono::steady_clock::now() < end) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) return ncclInternalError;
    std::this_thread::yield();
  }
  return state;
}

// Calls the body in a thread for each rank, which has a communicator and a device of its own.
void on_ranks(int ranks, bool blocking, const std::function<void(ncclComm_t, int)>& body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = blocking ? 1 : 0;
      ncclComm_t comm = NCCL_COMM_NULL;
      EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), blocking ? ncclSuccess : ncclInProgress);
      ASSERT_EQ(settled(comm), ncclSuccess);
      body(comm, rank);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    });
  }
  threads.clear();
  EXPECT_EQ(nccl_communicators(), 0);
}

at::Tensor on(int device, const at::Tensor& tensor) {
  return tensor.to(at::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
}

ncclResult_t all_reduce(ncclComm_t comm, const at::Tensor& tensor) {
  return ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), ncclFloat32,
                       ncclSum, comm, nullptr);
}

TEST(FakeNccl, ReducesToTheSameBitsOnAllRanks) {
  std::vector<at::Tensor> results(3), inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(at::rand({100'000}));
  on_ranks(3, false, [&](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, inputs[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(all_reduce(comm, tensor), ncclInProgress);
    EXPECT_EQ(settled(comm), ncclSuccess);
    results[static_cast<std::size_t>(rank)] = tensor.to(at::kCPU);
  });
  EXPECT_TRUE(at::equal(results[0], results[1]));
  EXPECT_TRUE(at::equal(results[0], results[2]));
  EXPECT_FALSE(at::equal(results[0], inputs[0] + inputs[1] + inputs[2]));  // as in a ring: not the order of ranks
  EXPECT_LT((results[0] - (inputs[0] + inputs[1] + inputs[2])).abs().max().item<float>(), 1e-6);
}

TEST(FakeNccl, ANonBlockingCallIsEnqueuedLater) {
  delay_nccl(milliseconds(400));  // mostly up to 13 ms
  int early = 0;
  on_ranks(2, false, [&](ncclComm_t comm, int rank) {
    for (int i = 0; i < 5; ++i) {
      const at::Tensor tensor = on(rank, at::full({4}, 1.0));
      ASSERT_EQ(all_reduce(comm, tensor), ncclInProgress);
      c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(static_cast<c10::DeviceIndex>(rank));
      if (rank == 0 && tensor[0].item<float>() == 1) ++early;  // the device had nothing to wait for yet
      ASSERT_EQ(settled(comm), ncclSuccess);
      EXPECT_EQ(tensor[0].item<float>(), 2);
    }
  });
  delay_nccl(milliseconds(2));
  EXPECT_GT(early, 0);
}

TEST(FakeNccl, ABlockingCallIsEnqueuedWhenItReturns) {
  const long before = nccl_threads();
  on_ranks(2, true, [&](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({4}, 1.0));
    EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
    EXPECT_EQ(tensor[0].item<float>(), 2);
  });
  EXPECT_EQ(nccl_threads(), before);
}

TEST(FakeNccl, RefusesACallWhileAnotherIsInProgress) {
  delay_nccl(std::chrono::seconds(2));
  on_ranks(2, false, [&](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({4}, 1.0));
    while (all_reduce(comm, tensor) == ncclInProgress) {
      ncclResult_t state = ncclSuccess;
      ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      if (state == ncclInProgress) break;
    }
    EXPECT_EQ(all_reduce(comm, tensor), ncclInvalidArgument);
  });
  delay_nccl(milliseconds(2));
}

TEST(FakeNccl, ASplitHasTheRanksOfEachColorInTheOrderOfTheirKeys) {
  on_ranks(5, false, [](ncclComm_t comm, int rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t child = NCCL_COMM_NULL;
    const int color = rank == 4 ? NCCL_SPLIT_NOCOLOR : rank % 2;
    EXPECT_EQ(ncclCommSplit(comm, color, -rank, &child, &config), ncclInProgress);
    ASSERT_EQ(settled(comm), ncclSuccess);
    EXPECT_EQ(child == nullptr, rank == 4);
    if (child == nullptr) return;
    int own = 0, size = 0;
    EXPECT_EQ(ncclCommUserRank(child, &own), ncclSuccess);
    EXPECT_EQ(ncclCommCount(child, &size), ncclSuccess);
    EXPECT_EQ(std::pair(own, size), std::pair(rank < 2 ? 1 : 0, 2));
    const at::Tensor tensor = on(rank, at::full({1}, 1.0 + rank));
    (void)all_reduce(child, tensor);
    ASSERT_EQ(settled(child), ncclSuccess);
    EXPECT_EQ(tensor.item<float>(), rank % 2 == 0 ? 4 : 6);
    EXPECT_EQ(ncclCommAbort(child), ncclSuccess);
  });
}

TEST(FakeNccl, RefusesToSplitWithOutstandingOperations) {
  on_ranks(2, true, [](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({1}, 1.0));
    if (rank == 1) return;  // never comes
    EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
    ncclComm_t child = NCCL_COMM_NULL;
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInvalidUsage);
  });
}

TEST(FakeNccl, AnAbortEndsWhatWaitsOnTheDevice) {
  const auto begin = std::chrono::steady_clock::now();
  on_ranks(2, true, [](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({1}, 1.0));
    if (rank == 1) return;  // never comes
    EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
  });
  c10::impl::VirtualGuardImpl(c10::kCUDA).synchronizeDevice(0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kDeadline);
}

TEST(FakeNccl, CountsOperationsWhoseMemoryWasFreedBeforeAnAbortEndedThem) {
  for (const bool frees : {false, true}) {
    const long before = nccl_freed_early();
    at::Tensor tensor;
    on_ranks(2, true, [&](ncclComm_t comm, int rank) {
      if (rank == 1) return;  // never comes
      tensor = on(rank, at::full({1}, 1.0));
      EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
      if (frees) tensor.reset();
    });
    EXPECT_EQ(nccl_freed_early() - before, frees ? 1 : 0);
  }
}

TEST(FakeNccl, AnAbortWaitsUntilTheGraphsOfTheCommunicatorAreDestroyed) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ncclComm_t comm = NCCL_COMM_NULL;
  ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, nullptr), ncclSuccess);
  const at::Tensor tensor = on(0, at::full({2}, 1.0));
  const c10::StreamGuard stream(c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(tensor.device()));
  auto graph = std::make_unique<FakeGraph>();
  graph->capture_begin();
  EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
  graph->capture_end();
  auto abort = std::async(std::launch::async, [comm] { return ncclCommAbort(comm); });
  EXPECT_EQ(abort.wait_for(milliseconds(100)), std::future_status::timeout);
  graph.reset();
  EXPECT_EQ(abort.get(), ncclSuccess);
}

// As the real one, it does not compare what the ranks call.
TEST(FakeNccl, DifferentCallsNeverEnd) {
  on_ranks(2, true, [](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({2 + rank}, 1.0));
    EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
    const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(devices.queryStream(devices.getStream(tensor.device())));
  });
}

// Captures an all_reduce on the first rank, and launches it on the second one.
TEST(FakeNccl, RefusesAnOperationThatOnlySomeRanksHaveInAGraph) {
  std::barrier both(2);
  on_ranks(2, true, [&](ncclComm_t comm, int rank) {
    const at::Tensor tensor = on(rank, at::full({2}, 1.0));
    const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
    const c10::StreamGuard stream(devices.getStreamFromGlobalPool(tensor.device()));
    FakeGraph graph;  // captures all threads
    both.arrive_and_wait();
    if (rank == 0) {
      graph.capture_begin();
      EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
      graph.capture_end();
    }
    both.arrive_and_wait();
    if (rank == 0) {
      graph.replay();
    } else {
      EXPECT_EQ(all_reduce(comm, tensor), ncclSuccess);
    }
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
      EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
      std::this_thread::yield();
    }
    EXPECT_EQ(state, ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(comm), ::testing::HasSubstr("an operation in a graph that other ranks have launched"));
    both.arrive_and_wait();  // an abort would end the other rank's operation
  });
}

TEST(FakeNccl, RefusesMemoryOfTheHost) {
  on_ranks(1, true, [](ncclComm_t comm, int) { EXPECT_EQ(all_reduce(comm, at::full({1}, 1.0)), ncclInvalidArgument); });
}

TEST(FakeNccl, RefusesACommunicatorThatWasAborted) {
  ncclComm_t kept = NCCL_COMM_NULL;
  on_ranks(1, true, [&](ncclComm_t comm, int) { kept = comm; });
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(kept, &state), ncclInvalidArgument);
}

TEST(FakeNccl, MissingWaitsAreErrorsOfTheCommunicator) {
  on_ranks(1, true, [](ncclComm_t comm, int rank) {
    at::Tensor tensor;
    {
      const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
      const auto before = devices.exchangeStream(devices.getStreamFromGlobalPool({c10::kCUDA, 0}));
      tensor = on(rank, at::full({1000}, 1.0)).mul(2);
      devices.exchangeStream(before);
    }
    EXPECT_EQ(all_reduce(comm, tensor), ncclUnhandledCudaError);
    EXPECT_THAT(ncclGetLastError(comm), ::testing::HasSubstr("ncclAllReduce on the default stream of device 0"));
  });
}

}  // namespace
}  // namespace phalanx::testing
