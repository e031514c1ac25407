// SPDX-License-Identifier: Apache-2.0
// Compares every operation on device tensors with the same operation on the CPU. PHALANX_TEST_DEVICE names the device,
// cpu or cuda. With cpu, CPU tensors are treated as device tensors. With cuda, the test fails if there is no CUDA
// device.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/backends/device/device_communicator.h"
#include "framework/base/cuda.h"
#include "framework/base/environment.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using Sizes = std::vector<std::int64_t>;

bool on_cuda() { return environment("PHALANX_TEST_DEVICE").value_or("cpu") == "cuda"; }
c10::DeviceType device() { return on_cuda() ? c10::kCUDA : c10::kCPU; }

at::Tensor values(int rank, std::int64_t elements, at::ScalarType dtype) {
  return at::arange(elements, at::kLong).add_(rank).remainder_(5).to(dtype);
}

// Calls `operation(group, put)` on both groups, where `put` moves a CPU tensor to the group's device, and compares the
// results.
struct Sides {
  Communicator& of_device;
  Communicator& of_cpu;

  template <class Operation>
  void compare(const std::string& what, const Operation& operation) const {
    const auto to_device = [](const at::Tensor& tensor) { return tensor.clone().to(device()); };
    const auto to_cpu = [](const at::Tensor& tensor) { return tensor.clone(); };
    const at::Tensor want = operation(of_cpu, to_cpu);
    const at::Tensor got = operation(of_device, to_device).to(at::kCPU);
    EXPECT_TRUE(at::equal(got, want)) << what;
  }
};

void reductions(const Sides& sides, at::ScalarType dtype, Reduction::Kind kind, std::int64_t n) {
  const int rank = sides.of_cpu.rank(), size = sides.of_cpu.size();
  const std::string what = std::string(to_string(kind)) + " of " + std::to_string(n) + ' ' + c10::toString(dtype);
  sides.compare("all_reduce, " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor tensor = put(values(rank, n, dtype));
    group.all_reduce(tensor, kind).wait();
    return tensor;
  });
  sides.compare("reduce, " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor tensor = put(values(rank, n, dtype));
    group.reduce(tensor, kind, size - 1).wait();
    return rank == size - 1 ? tensor : put(at::empty({0}, dtype));
  });
  sides.compare("reduce_scatter, " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n}, dtype));
    group.reduce_scatter(output, put(values(rank, n * size, dtype)), kind).wait();
    return output;
  });
}

Sizes uneven(int size, std::int64_t n) {
  Sizes counts;
  for (int rank = 0; rank < size; ++rank) counts.push_back(rank % 2 == 1 ? 0 : n + rank);
  return counts;
}

void moves(const Sides& sides, at::ScalarType dtype, std::int64_t n) {
  const int rank = sides.of_cpu.rank(), size = sides.of_cpu.size(), root = size - 1;
  const std::string what = std::to_string(n) + ' ' + c10::toString(dtype);
  sides.compare("broadcast of " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor tensor = put(values(rank, n, dtype));
    group.broadcast(tensor, root).wait();
    return tensor;
  });
  for (const auto& counts : {Sizes(), uneven(size, n)}) {
    const std::int64_t own = counts.empty() ? n : counts[rank];
    std::int64_t all = 0;
    for (int r = 0; r < size; ++r) all += counts.empty() ? n : counts[r];
    sides.compare("all_gather of " + what, [&](Communicator& group, const auto& put) {
      const at::Tensor output = put(at::empty({all}, dtype));
      group.all_gather(output, put(values(rank, own, dtype)), counts).wait();
      return output;
    });
    sides.compare("gather of " + what, [&](Communicator& group, const auto& put) {
      const at::Tensor output = put(at::empty({rank == root ? all : 0}, dtype));
      group.gather(output, put(values(rank, own, dtype)), root, counts).wait();
      return output;
    });
    sides.compare("scatter of " + what, [&](Communicator& group, const auto& put) {
      const at::Tensor output = put(at::empty({own}, dtype));
      group.scatter(output, put(values(rank, all, dtype)), root, counts).wait();
      return output;
    });
  }
  sides.compare("all_to_all of " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n * size}, dtype));
    group.all_to_all(output, put(values(rank, n * size, dtype))).wait();
    return output;
  });
  sides.compare("send and recv of " + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n}, dtype));
    Work sent = group.send(put(values(rank, n, dtype)), (rank + 1) % size, 3);
    group.recv(output, (rank + size - 1) % size, 3).wait();
    sent.wait();
    return output;
  });
}

void try_everything(Communicator& of_device, Communicator& of_cpu) {
  const Sides sides{of_device, of_cpu};
  for (const auto n : {0, 1, 1025, 150'001}) {
    for (const auto dtype : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
                             at::kFloat, at::kDouble, at::kBool}) {
      moves(sides, dtype, n);
      reductions(sides, dtype, Reduction::kSum, n);
      reductions(sides, dtype, Reduction::kMax, n);
    }
    reductions(sides, at::kFloat, Reduction::kMean, n);
    reductions(sides, at::kInt, Reduction::kMean, n);
    reductions(sides, at::kInt, Reduction::kBitXor, n);
    reductions(sides, at::kDouble, Reduction::kProduct, n);
  }
}

class OperationsOnDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (on_cuda()) (void)Cuda::global().devices();  // throws if there is none
  }
};

// Several ranks may share one device.
TEST_F(OperationsOnDevice, GiveTheSameResultsThroughTheHost) {
  for (const int ranks : {1, 2, 3}) {
    testing::run_ranks("inproc", ranks, [](const CommunicatorPtr& world) {
      const auto host = world->split(0, world->rank());
      DeviceCommunicator group(host, device(), {.chunk_bytes = 100'000});
      try_everything(group, *world);
      const auto child = group.split(world->rank() % 2, 0);
      const auto of_cpu = world->split(world->rank() % 2, 0);
      try_everything(*child, *of_cpu);
    });
  }
}

// Like a CUDA-aware MPI; here the CPU's memory is the device memory.
TEST_F(OperationsOnDevice, GiveTheSameResultsIfTheHostAccessesDeviceMemory) {
  const auto direct = [](const Operation& operation) {
    return !on_cuda() && operation.call.op != Op::kBarrier &&
           !c10::isIntegralType(operation.output.scalar_type(), true);
  };
  testing::run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    const auto host = world->split(0, world->rank());
    DeviceCommunicator group(host, device(), {.direct = direct});
    try_everything(group, *world);
  });
}

TEST_F(OperationsOnDevice, AllocateZeroedMemoryOnTheDevice) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    DeviceCommunicator group(world, device());
    const at::Tensor memory = group.allocate({1000}, at::device(device()).dtype(at::kFloat));
    EXPECT_EQ(memory.device().type(), device());
    EXPECT_TRUE(at::equal(memory.to(at::kCPU), at::zeros({1000})));
  });
}

}  // namespace
}  // namespace phalanx
