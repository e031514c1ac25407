// SPDX-License-Identifier: Apache-2.0
// Groups of NCCL alone, without the other paths of a group of devices: two ranks, or one rank on a machine with a
// single device, for which a group of devices would not use NCCL. They are compared with the host's group, many times
// and with other work on the device, and in graphs. Skipped without a device `cuda`, which may be the fake one
// (fake_cuda).
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/backends/nccl/plugin.h"
#include "framework/base/cuda.h"
#include "framework/base/device_graph.h"
#include "framework/base/environment.h"
#include "framework/comm/device_kind.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

struct NcclRank {
  CommunicatorPtr host, group;  // the same ranks
  c10::Device device;

  int rank() const { return host->rank(); }
  int size() const { return host->size(); }
  at::Tensor full(std::int64_t elements, double value, at::ScalarType dtype = at::kDouble) const {
    return at::full({elements}, value, at::device(device).dtype(dtype));
  }
};

class NcclAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = kind_->missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  void run(const std::function<void(const NcclRank&)>& body) const {
    const int devices = kind_->count();
    run_ranks("inproc", std::min(devices, 2), [&](const CommunicatorPtr& world) {
      const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(world->rank()));
      const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
      guard.setDevice(device);
      const c10::StreamGuard stream(guard.getStreamFromGlobalPool(device));
      CommunicatorPtr group;
      Cuda::global().function<nccl::Connect>("phalanx_nccl_connect")(
          {.host = world->split(0, world->rank()), .device = device.index(), .timeout = Seconds(60)}, group);
      body({world, group, device});
    });
  }

  static std::int64_t rounds() { return environment("PHALANX_TEST_DEVICE") ? 1000 : 30; }  // the fake NCCL is slow

 private:
  std::shared_ptr<const DeviceKind> kind_ = DeviceKinds::Choice("cuda").make();
};

// Calls a collective on both groups, where `put` moves a tensor of the CPU to the memory of the group.
struct BothGroups {
  const NcclRank& rank;

  template <class Collective>
  void compare(const std::string& what, const Collective& collective) const {
    const at::Tensor want = collective(*rank.host, [](const at::Tensor& tensor) { return tensor.clone(); });
    const at::Tensor got = collective(*rank.group, [&](const at::Tensor& tensor) { return tensor.to(rank.device); });
    EXPECT_TRUE(at::equal(got.to(at::kCPU), want)) << what;
  }
};

at::Tensor numbers_of(int rank, std::int64_t elements, at::ScalarType dtype) {
  return at::arange(elements, at::kLong).add_(rank).remainder_(5).to(dtype);
}

void compare_moves(const NcclRank& rank, at::ScalarType dtype, std::int64_t n) {
  const BothGroups both{rank};
  const std::string what = " of " + std::to_string(n) + ' ' + c10::toString(dtype);
  const int last = rank.size() - 1;
  both.compare("broadcast" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor tensor = put(numbers_of(rank.rank(), n, dtype));
    group.broadcast(tensor, last).wait();
    return tensor;
  });
  both.compare("all_gather" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n * rank.size()}, dtype));
    group.all_gather(output, put(numbers_of(rank.rank(), n, dtype))).wait();
    return output;
  });
  both.compare("gather" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({rank.rank() == last ? n * rank.size() : 0}, dtype));
    group.gather(output, put(numbers_of(rank.rank(), n, dtype)), last).wait();
    return output;
  });
  both.compare("scatter" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n}, dtype));
    group.scatter(output, put(numbers_of(rank.rank(), n * rank.size(), dtype)), last).wait();
    return output;
  });
  both.compare("all_to_all" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n * rank.size()}, dtype));
    group.all_to_all(output, put(numbers_of(rank.rank(), n * rank.size(), dtype))).wait();
    return output;
  });
}

void compare_reductions(const NcclRank& rank, at::ScalarType dtype, Reduction::Kind kind, std::int64_t n) {
  const BothGroups both{rank};
  const std::string what = ' ' + std::string(to_string(kind)) + " of " + std::to_string(n) + ' ' + c10::toString(dtype);
  both.compare("all_reduce" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor tensor = put(numbers_of(rank.rank(), n, dtype));
    group.all_reduce(tensor, kind).wait();
    return tensor;
  });
  both.compare("reduce_scatter" + what, [&](Communicator& group, const auto& put) {
    const at::Tensor output = put(at::empty({n}, dtype));
    group.reduce_scatter(output, put(numbers_of(rank.rank(), n * rank.size(), dtype)), kind).wait();
    return output;
  });
}

TEST_F(NcclAlone, ComputesAsTheHost) {
  run([](const NcclRank& rank) {
    for (const std::int64_t n : {1, 1025}) {
      for (const auto dtype : {at::kByte, at::kShort, at::kLong, at::kHalf, at::kBFloat16, at::kDouble, at::kBool}) {
        compare_moves(rank, dtype, n);
      }
      for (const auto dtype : {at::kByte, at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
        compare_reductions(rank, dtype, Reduction::kSum, n);
        compare_reductions(rank, dtype, Reduction::kMax, n);
      }
      for (const auto dtype : {at::kHalf, at::kFloat, at::kDouble}) {
        compare_reductions(rank, dtype, Reduction::kMean, n);
      }
    }
  });
}

// Means are sums that another kernel divides, so they show a wait that is missing.
TEST_F(NcclAlone, ComputesMeansOfManyRoundsWhileTheDeviceIsBusy) {
  run([](const NcclRank& rank) {
    const double others = (rank.size() - 1) / 2.0;
    const at::Tensor load = rank.full(256 * 256, 1.0 / 256, at::kFloat).view({256, 256});
    const at::Tensor wrong = at::zeros({}, at::device(rank.device).dtype(at::kLong));
    for (std::int64_t round = 0; round < rounds(); ++round) {
      const std::int64_t n = 1000 + 100 * (round % 7);
      const double value = static_cast<double>(round);
      const at::Tensor all = rank.full(n, value + rank.rank()), part = rank.full(n, 0);
      const at::Tensor parts = rank.full(n * rank.size(), value - rank.rank());
      Work first = rank.group->all_reduce(all, Reduction::kMean);
      Work second = rank.group->reduce_scatter(part, parts, Reduction::kMean);
      const at::Tensor product = at::mm(load, load);
      first.wait();
      second.wait();
      wrong.add_(all.ne(value + others).sum()).add_(part.ne(value - others).sum());
    }
    EXPECT_EQ(wrong.item<std::int64_t>(), 0);
  });
}

// Graphs of the fake device record all threads, so one rank records after the other.
TEST_F(NcclAlone, RepeatsAGraphWithAReduction) {
  run([](const NcclRank& rank) {
    const at::Tensor mean = rank.full(1000, rank.rank()), total = rank.full(1000, 0);
    const auto work = [&] {
      mean.add_(1);
      rank.group->all_reduce(mean, Reduction::kMean).wait();
      total.add_(mean);
    };
    work();  // NCCL connects the ranks
    const auto graph = make_device_graph(c10::kCUDA);
    for (int recorder = 0; recorder < rank.size(); ++recorder) {
      rank.host->barrier().wait();
      if (rank.rank() != recorder) continue;
      graph->capture_begin();
      work();
      graph->capture_end();
    }
    rank.host->barrier().wait();
    for (std::int64_t round = 0; round < rounds(); ++round) graph->replay();
    const auto n = static_cast<double>(rounds() + 1), first = (rank.size() - 1) / 2.0;
    EXPECT_TRUE(at::equal(mean.to(at::kCPU), at::full({1000}, first + n, at::kDouble)));
    EXPECT_TRUE(at::equal(total.to(at::kCPU), at::full({1000}, n * first + n * (n + 1) / 2, at::kDouble)));
    rank.host->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
