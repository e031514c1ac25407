// SPDX-License-Identifier: Apache-2.0
// Tests of the plug-in's groups, which need one device: a rank alone does everything that a group of NCCL can do. With
// two or more devices, ranks with a device each compare means with the CPU's, while devices and cores are busy.
// With PHALANX_TEST_DEVICE the devices are real, otherwise those of fake_cuda, which must then be linked.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backends/nccl/plugin.h"
#include "framework/base/cuda.h"
#include "framework/base/device_graph.h"
#include "framework/base/environment.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/testing/device_ranks.h"
#include "framework/testing/reference.h"

namespace phalanx::testing {
namespace {

constexpr Seconds kTimeout{60};

bool is_real() { return environment("PHALANX_TEST_DEVICE").has_value(); }

/// A rank with its device and its group of NCCL.
struct Member {
  CommunicatorPtr host, group;
  c10::Device device;

  at::Tensor there(const at::Tensor& values) const { return values.to(device); }
  at::Tensor full(std::int64_t elements, double value) const {
    return at::full({elements}, value, at::device(device).dtype(at::kFloat));
  }
};

class NcclGroups : public ::testing::Test {
 protected:
  // Loads CUDA before anything is computed.
  NcclGroups() : devices_(DeviceKinds::Choice("cuda").make()->count()) {}

  static void run(int ranks, const std::function<void(const Member&)>& body) {
    run_with_devices(ranks, [&](const CommunicatorPtr& world, c10::Device device) {
      CommunicatorPtr group;
      const auto connect = Cuda::global().function<nccl::Connect>("phalanx_nccl_connect");
      connect({.host = world->split(0, world->rank()), .device = device.index(), .timeout = kTimeout}, group);
      body({world, group, device});
    });
  }

  const int devices_;
};

// With one rank, the result of each operation is the input.
void expect_copied(const Member& alone, at::ScalarType dtype, const std::string& name,
                   const std::function<Work(const at::Tensor& output, const at::Tensor& input)>& operation) {
  const at::Tensor values = input_of(0, 1025, dtype), input = alone.there(values), output = at::zeros_like(input);
  operation(output, input).wait();
  EXPECT_TRUE(at::equal(output.to(at::kCPU), values)) << name << " of " << c10::toString(dtype);
}

void expect_same(const Member& alone, at::ScalarType dtype, const std::string& name,
                 const std::function<Work(const at::Tensor& tensor)>& operation) {
  expect_copied(alone, dtype, name, [&](const at::Tensor& output, const at::Tensor& input) {
    output.copy_(input);
    return operation(output);
  });
}

TEST_F(NcclGroups, OfOneRankMoveEveryDtype) {
  run(1, [](const Member& alone) {
    Communicator& group = *alone.group;
    const std::vector<std::int64_t> counts{1025};
    for (const auto dtype : all_dtypes()) {
      expect_same(alone, dtype, "broadcast", [&](const auto& tensor) { return group.broadcast(tensor, 0); });
      for (const at::IntArrayRef parts : {at::IntArrayRef(), at::IntArrayRef(counts)}) {
        expect_copied(alone, dtype, "all_gather",
                      [&](const auto& output, const auto& input) { return group.all_gather(output, input, parts); });
        expect_copied(alone, dtype, "gather",
                      [&](const auto& output, const auto& input) { return group.gather(output, input, 0, parts); });
        expect_copied(alone, dtype, "scatter",
                      [&](const auto& output, const auto& input) { return group.scatter(output, input, 0, parts); });
        expect_copied(alone, dtype, "all_to_all", [&](const auto& output, const auto& input) {
          return group.all_to_all(output, input, parts, parts);
        });
      }
    }
  });
}

TEST_F(NcclGroups, OfOneRankReduceEveryDtypeOfNccl) {
  run(1, [](const Member& alone) {
    Communicator& group = *alone.group;
    for (const auto dtype :
         {at::kByte, at::kChar, at::kInt, at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
      for (const Reduction op :
           {Reduction::kSum, Reduction::kMean, Reduction::kProduct, Reduction::kMin, Reduction::kMax}) {
        if (op == Reduction::kMean && at::isIntegralType(dtype, /*includeBool=*/true)) continue;
        const std::string of = " by " + op.name();
        expect_same(alone, dtype, "all_reduce" + of, [&](const auto& tensor) { return group.all_reduce(tensor, op); });
        expect_same(alone, dtype, "reduce" + of, [&](const auto& tensor) { return group.reduce(tensor, op, 0); });
        expect_copied(alone, dtype, "reduce_scatter" + of,
                      [&](const auto& output, const auto& input) { return group.reduce_scatter(output, input, op); });
      }
    }
  });
}

TEST_F(NcclGroups, OfOneRankCanBeSplitAndAllocateMemory) {
  run(1, [](const Member& alone) {
    EXPECT_EQ(alone.group->split(-1, 0), nullptr);
    const CommunicatorPtr child = alone.group->split(0, 0);
    ASSERT_NE(child, nullptr);
    EXPECT_EQ(child->size(), 1);
    const at::Tensor memory = child->allocate({100'000}, at::device(alone.device).dtype(at::kFloat));
    EXPECT_EQ(memory.abs().max().item<float>(), 0);
    memory.fill_(3);
    child->all_reduce(memory, Reduction::kMean).wait();
    EXPECT_TRUE(at::equal(memory.to(at::kCPU), at::full({100'000}, 3.0)));
  });
}

TEST_F(NcclGroups, OfOneRankHaveManyOperationsInFlight) {
  constexpr int kOperations = 200;
  run(1, [](const Member& alone) {
    std::vector<at::Tensor> outputs;
    std::vector<Work> works;
    for (int i = 0; i < kOperations; ++i) {
      outputs.push_back(alone.full(1000, -1));
      works.push_back(alone.group->all_gather(outputs.back(), alone.full(1000, i)));
    }
    works.back().synchronize();
    EXPECT_TRUE(works.back().done());
    wait_all(works);
    for (int i = 0; i < kOperations; ++i) EXPECT_EQ(outputs[i].sum().item<float>(), 1000.0F * static_cast<float>(i));
  });
}

TEST_F(NcclGroups, OfOneRankTakePartInGraphs) {
  run(1, [](const Member& alone) {
    const at::Tensor input = alone.full(1000, 1), output = alone.full(1000, -1);
    const auto exchange = [&] {
      const at::Tensor doubled = input * 2;
      alone.group->all_reduce(doubled, Reduction::kMean).wait();
      alone.group->all_gather(output, doubled).wait();
    };
    exchange();  // NCCL connects with the first operation
    output.fill_(-1);
    const auto graph = make_device_graph(c10::kCUDA);
    graph->capture_begin();
    exchange();
    graph->capture_end();
    EXPECT_EQ(output[0].item<float>(), -1) << "is computed while it is recorded";
    for (const float value : {1, 2, 3}) {
      input.fill_(value);
      graph->replay();
      EXPECT_TRUE(at::equal(output.to(at::kCPU), at::full({1000}, 2 * value)));
    }
  });
}

/// The inputs of the ranks for one size and dtype, and their means as the CPU computes them. There are some of each, so
/// that a result of an earlier turn is a wrong one.
struct Means {
  static constexpr int kVariants = 5;  // no divisor of the number of sizes and dtypes

  Means(const Member& member, std::int64_t of_elements, at::ScalarType of_dtype)
      : elements(of_elements), dtype(of_dtype) {
    const int ranks = member.host->size();
    for (int variant = 0; variant < kVariants; ++variant) {
      std::vector<int> contributors;
      for (int rank = 0; rank < ranks; ++rank) contributors.push_back(variant * ranks + rank);
      inputs.push_back(
          member.there(input_of(contributors[static_cast<std::size_t>(member.host->rank())], elements, dtype)));
      expected.push_back(reduced(contributors, elements, dtype, Reduction::kMean));
    }
  }

  std::int64_t elements;
  at::ScalarType dtype;
  std::vector<at::Tensor> inputs, expected;
};

std::vector<std::int64_t> growing_counts(int ranks, std::int64_t elements) {
  const auto begin = [&](std::int64_t rank) {
    return elements * rank * (rank + 1) / (static_cast<std::int64_t>(ranks) * (ranks + 1));
  };
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(begin(rank + 1) - begin(rank));
  return counts;
}

/// Counts wrong results on one rank, and keeps the text of the first one: peers would wait for a rank that stopped.
class Wrong {
 public:
  void check(const at::Tensor& result, const at::Tensor& expected, const std::string& where) {
    if (at::equal(result.to(at::kCPU), expected)) return;
    if (count_++ == 0) first_ = where;
  }
  int count() const { return count_; }
  const std::string& first() const { return first_; }

 private:
  int count_ = 0;
  std::string first_;
};

/// Launches a mean by each operation, and compares the results. `delay` puts work on the stream before the inputs are
/// made, so that they are late.
void compare_means(const Member& member, const Means& means, int turn, const std::function<void()>& delay,
                   Wrong& wrong) {
  const int rank = member.host->rank(), ranks = member.host->size(), root = turn % ranks;
  const auto variant = static_cast<std::size_t>(turn) % means.inputs.size();
  const at::Tensor& expected = means.expected[variant];
  const auto counts = growing_counts(ranks, means.elements);
  const PartLayout equal({}, ranks, means.elements), uneven(counts, ranks, means.elements);
  delay();
  const at::Tensor input = means.inputs[variant].clone(), all = input.clone(), one = input.clone(),
                   part = at::zeros({equal.count(rank)}, input.options()),
                   uneven_part = at::zeros({uneven.count(rank)}, input.options());
  std::vector<Work> works;
  works.push_back(member.group->all_reduce(all, Reduction::kMean));
  works.push_back(member.group->reduce(one, Reduction::kMean, root));
  works.push_back(member.group->reduce_scatter(part, input, Reduction::kMean));
  works.push_back(member.group->reduce_scatter(uneven_part, input, Reduction::kMean, counts));
  wait_all(works);
  const std::string where = " of " + std::to_string(means.elements) + " elements of " + c10::toString(means.dtype) +
                            " in turn " + std::to_string(turn);
  wrong.check(all, expected, "all_reduce" + where);
  if (rank == root) wrong.check(one, expected, "reduce" + where);
  wrong.check(part, equal.of(expected, rank), "reduce_scatter" + where);
  wrong.check(uneven_part, uneven.of(expected, rank), "reduce_scatter of uneven parts" + where);
}

std::vector<Means> all_means(const Member& member) {
  const std::vector<std::int64_t> per_rank =
      is_real() ? std::vector<std::int64_t>{1, 341, 21'845, 65'536} : std::vector<std::int64_t>{1, 341, 3001};
  std::vector<Means> all;
  for (const std::int64_t elements : per_rank) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
      all.emplace_back(member, elements * member.host->size(), dtype);
    }
  }
  return all;
}

/// Keeps a core busy until it is destroyed, so that threads of NCCL run late.
std::jthread busy_core() {
  return std::jthread([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
    }
  });
}

// A turn calls each operation once, for one size and dtype.
void compare_means_under_load(const Member& member, int turns) {
  const std::int64_t width = is_real() ? 1024 : 16;
  const at::Tensor factor = at::full({width, width}, 1.0 / static_cast<double>(width), at::device(member.device));
  const auto all = all_means(member);
  const c10::impl::VirtualGuardImpl devices(c10::kCUDA);
  const c10::Stream beside = devices.getStreamFromGlobalPool(member.device);
  devices.synchronizeDevice(member.device.index());  // the other stream uses the factor
  Wrong wrong;
  for (int turn = 0; turn < turns; ++turn) {
    {
      const c10::StreamGuard guard(beside);
      (void)at::mm(factor, factor);
    }
    const Means& means = all[static_cast<std::size_t>(turn) % all.size()];
    compare_means(member, means, turn, [&] { (void)at::mm(factor, factor); }, wrong);
  }
  EXPECT_EQ(wrong.count(), 0) << "of " << turns << " turns; the first: " << wrong.first();
  devices.synchronizeDevice(member.device.index());
}

TEST_F(NcclGroups, OfSeveralDevicesComputeTheMeansOfTheCpuUnderLoad) {
  if (devices_ < 2) GTEST_SKIP() << "needs two devices";
  const int ranks = std::min(devices_, is_real() ? 8 : 3), turns = is_real() ? 4000 : 36;  // there are four dtypes
  const std::array<std::jthread, 2> busy{busy_core(), busy_core()};
  run(ranks, [&](const Member& member) { compare_means_under_load(member, turns); });
}

}  // namespace
}  // namespace phalanx::testing
