// What every backend's Communicator does. Linked with one backend at a time: see the BUILD files of the backends.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/mesh.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

const int kWorldSizes[] = {1, 2, 3, 4, 5};
const at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kLong};
// Empty, one, odd, around a cache line, beyond one-shot messages, beyond two scratch buffers.
const std::int64_t kElements[] = {0, 1, 7, 16, 17, 1023, 1025, 65'537, 150'001};

// Small whole numbers: sums of them are exact in every dtype and order. Differs by rank.
at::Tensor pattern(int rank, std::int64_t elements, at::ScalarType dtype) {
  return ((at::arange(elements, at::kLong) * 7 + rank * 13) % 31 - 15).to(dtype);
}

at::Tensor expected(Reduction op, int ranks, std::int64_t elements, at::ScalarType dtype) {
  at::Tensor result = pattern(0, elements, at::kLong);
  for (int rank = 1; rank < ranks; ++rank) {
    const at::Tensor next = pattern(rank, elements, at::kLong);
    if (op == Reduction::kMin) result = result.minimum(next);
    if (op == Reduction::kMax) result = result.maximum(next);
    if (op == Reduction::kSum || op == Reduction::kMean) result = result + next;
  }
  if (op != Reduction::kMean) return result.to(dtype);
  if (dtype == at::kLong) return result.div(ranks, "trunc");
  return result.to(dtype) / ranks;
}

class Communicators : public ::testing::TestWithParam<int> {  // by world size
 protected:
  void run(const RankBody& body) { run_ranks(kBackend, GetParam(), body); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Communicators, ::testing::ValuesIn(kWorldSizes));

// L3
TEST_P(Communicators, KnowsItsPlace) {
  run([&](const CommunicatorPtr& world) {
    EXPECT_EQ(world->size(), GetParam());
    at::Tensor seen = at::zeros({world->size()}, at::kLong);
    seen[world->rank()] = 1;
    world->all_reduce(seen, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(seen, at::ones({world->size()}, at::kLong))) << "every rank exists once";
    EXPECT_FALSE(world->name().empty());
  });
}

// K3, K7: private memory.
TEST_P(Communicators, AllReduceCombinesPrivateMemory) {
  run([&](const CommunicatorPtr& world) {
    for (auto dtype : kDtypes) {
      for (auto elements : kElements) {
        for (auto op : {Reduction::kSum, Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
          at::Tensor tensor = pattern(world->rank(), elements, dtype);
          world->all_reduce(tensor, op).wait();
          EXPECT_TRUE(tensor.allclose(expected(op, world->size(), elements, dtype), 1e-6, 1e-6))
              << to_string(op) << " of " << elements << ' ' << dtype;
        }
      }
    }
  });
}

// K3, K7: memory from allocate(), at the begin of a region and inside it.
TEST_P(Communicators, AllReduceCombinesAllocatedMemory) {
  run([&](const CommunicatorPtr& world) {
    for (auto dtype : kDtypes) {
      const at::Tensor region = world->allocate({150'100}, dtype);
      EXPECT_EQ(region.count_nonzero().item<std::int64_t>(), 0) << "allocate() gives zeroed memory";
      for (auto elements : kElements) {
        for (std::int64_t offset : {0, 3}) {
          at::Tensor tensor = region.narrow(0, offset, elements);
          for (auto op : {Reduction::kSum, Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
            region.fill_(99);
            tensor.copy_(pattern(world->rank(), elements, dtype));
            world->all_reduce(tensor, op).wait();
            EXPECT_TRUE(tensor.allclose(expected(op, world->size(), elements, dtype), 1e-6, 1e-6))
                << to_string(op) << " of " << elements << ' ' << dtype << " at " << offset;
            EXPECT_EQ(region[offset + elements].item<std::int64_t>(), 99) << "wrote past the end";
          }
        }
      }
    }
  });
}

TEST_P(Communicators, AllReduceTakesPrivateAndAllocatedMemoryInOneOperation) {
  run([&](const CommunicatorPtr& world) {
    const at::Tensor region = world->allocate({5000}, at::kFloat);
    at::Tensor tensor = world->rank() % 2 == 0 ? region : at::zeros({5000});
    tensor.copy_(pattern(world->rank(), 5000, at::kFloat));
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(tensor, expected(Reduction::kSum, world->size(), 5000, at::kFloat)));
  });
}

TEST_P(Communicators, AllReduceGivesEveryRankTheSameBits) {
  run([&](const CommunicatorPtr& world) {
    for (std::int64_t elements : {1, 1000, 100'000}) {
      // Values whose sum depends on the order of addition.
      at::Tensor tensor = at::arange(elements, at::kFloat).sin_().mul_(1e3 * (world->rank() + 1)).add_(1e-3);
      world->all_reduce(tensor, Reduction::kMean).wait();
      at::Tensor root = tensor.clone();
      world->broadcast(root, 0).wait();
      EXPECT_TRUE(at::equal(tensor, root)) << elements << " elements";
    }
  });
}

// K1
TEST_P(Communicators, BroadcastGivesRootsElements) {
  run([&](const CommunicatorPtr& world) {
    for (auto dtype : kDtypes) {
      for (auto elements : kElements) {
        for (int root = 0; root < world->size(); ++root) {
          for (const at::Tensor& tensor : {at::empty({elements}, dtype), world->allocate({elements}, dtype)}) {
            tensor.copy_(pattern(world->rank(), elements, dtype));
            world->broadcast(tensor, root).wait();
            EXPECT_TRUE(at::equal(tensor, pattern(root, elements, dtype)))
                << elements << ' ' << dtype << " from " << root;
          }
        }
      }
    }
  });
}

TEST_P(Communicators, ManyDimensionsAreOneRun) {
  run([&](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({3, 4, 5}, world->rank() + 1, at::kDouble);
    world->all_reduce(tensor, Reduction::kMax).wait();
    EXPECT_TRUE(at::equal(tensor, at::full({3, 4, 5}, world->size(), at::kDouble)));
  });
}

TEST_P(Communicators, BarrierWaitsForTheLast) {
  run([&](const CommunicatorPtr& world) {
    const at::Tensor arrived = world->allocate({1}, at::kLong);
    const int last = world->size() - 1;
    const auto start = std::chrono::steady_clock::now();
    if (world->rank() == last) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    world->barrier().wait();
    if (world->rank() != last || world->size() == 1) return;
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  });
}

TEST_P(Communicators, OperationsCompleteInOrderOfLaunch) {
  run([&](const CommunicatorPtr& world) {
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      tensors.push_back(at::full({1 + 997 * i}, world->rank() + i, at::kDouble));
      works.push_back(world->all_reduce(tensors.back(), Reduction::kMax));
    }
    works.back().wait();
    for (int i = 0; i < 20; ++i) {
      works[i].wait();
      EXPECT_TRUE(works[i].done());
      EXPECT_EQ(tensors[i][0].item<double>(), world->size() - 1 + i);
    }
  });
}

TEST_P(Communicators, AWorkThatNobodyWaitsForIsFinishedWhenItGoes) {
  run([&](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    { Work work = world->all_reduce(tensor, Reduction::kSum); }
    EXPECT_EQ(tensor[0].item<float>(), world->size());
  });
}

// K13: a thousand operations and regions leave nothing behind that a later one could meet.
TEST_P(Communicators, ReusesWhatItHolds) {
  run([&](const CommunicatorPtr& world) {
    for (int i = 0; i < 200; ++i) {
      at::Tensor tensor = i % 2 == 0 ? world->allocate({2000}, at::kFloat) : at::zeros({2000});
      tensor.fill_(i);
      world->all_reduce(tensor, Reduction::kSum).wait();
      ASSERT_EQ(tensor[1999].item<float>(), i * world->size());
    }
  });
}

TEST_P(Communicators, AllocatedMemoryOutlivesItsCommunicator) {
  run([&](const CommunicatorPtr& world) {
    auto half = world->split(world->rank() % 2, 0);
    at::Tensor tensor = half->allocate({4096}, at::kFloat);
    half.reset();
    tensor.fill_(3);
    EXPECT_EQ(tensor.sum().item<float>(), 3 * 4096);
  });
}

// C1
TEST_P(Communicators, SplitGroupsByColorAndOrdersByKey) {
  run([&](const CommunicatorPtr& world) {
    const int parity = world->rank() % 2;
    const auto group = world->split(parity, -world->rank());
    const int members = (world->size() + 1 - parity) / 2;
    EXPECT_EQ(group->size(), members);
    EXPECT_EQ(group->rank(), members - 1 - world->rank() / 2) << "keys fall as ranks rise";
    EXPECT_NE(group->name(), world->name());
    at::Tensor sum = at::full({2000}, world->rank(), at::kLong);
    group->all_reduce(sum, Reduction::kSum).wait();
    std::int64_t want = 0;
    for (int rank = parity; rank < world->size(); rank += 2) want += rank;
    EXPECT_EQ(sum[1999].item<std::int64_t>(), want);
  });
}

TEST_P(Communicators, SplitOfEqualKeysKeepsTheOrderOfRanks) {
  run([&](const CommunicatorPtr& world) { EXPECT_EQ(world->split(0, 7)->rank(), world->rank()); });
}

TEST_P(Communicators, SplitLeavesOutNegativeColors) {
  run([&](const CommunicatorPtr& world) {
    const auto group = world->split(world->rank() == 0 ? -1 : 3, 0);
    EXPECT_EQ(group == nullptr, world->rank() == 0);
    if (group) {
      EXPECT_EQ(group->size(), world->size() - 1);
    }
  });
}

TEST_P(Communicators, GroupsOfGroupsWork) {
  run([&](const CommunicatorPtr& world) {
    const auto outer = world->split(0, -world->rank());
    const auto inner = outer->split(outer->rank() / 2, 0);
    at::Tensor tensor = inner->allocate({3000}, at::kFloat).fill_(1);
    inner->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), inner->size());
  });
}

// Groups that overlap, used alternately; waited for in another order than launched.
TEST_P(Communicators, SeveralGroupsTakeTurns) {
  run([&](const CommunicatorPtr& world) {
    const auto half = world->split(world->rank() % 2, 0);
    at::Tensor a = at::ones({10'000}), b = at::ones({10'000});
    for (int i = 0; i < 10; ++i) {
      Work on_half = half->all_reduce(a, Reduction::kMax);
      Work on_world = world->all_reduce(b, Reduction::kMax);
      if (world->rank() % 2 == 0) {
        on_world.wait();
        on_half.wait();
      } else {
        on_half.wait();
        on_world.wait();
      }
    }
    EXPECT_EQ(a[9999].item<float>() + b[9999].item<float>(), 2);
  });
}

TEST_P(Communicators, MeshHasOneGroupPerAxis) {
  run([&](const CommunicatorPtr& world) {
    MeshShape shape;
    shape[Axis::kTensor] = world->size() % 2 == 0 ? 2 : 1;
    shape[Axis::kData] = world->size() / shape[Axis::kTensor];
    const Mesh mesh(world, shape);
    EXPECT_EQ(mesh.data()->size(), shape[Axis::kData]);
    EXPECT_EQ(mesh.along(Axis::kTensor)->rank(), world->rank() % shape[Axis::kTensor]) << "the last axis is innermost";
    EXPECT_EQ(mesh.data()->rank(), world->rank() / shape[Axis::kTensor]);
    EXPECT_EQ(mesh.along(Axis::kPipe)->size(), 1);
    at::Tensor sum = at::full({1}, world->rank(), at::kLong);
    mesh.data()->all_reduce(sum, Reduction::kSum).wait();
    std::int64_t want = 0;
    const auto stride = shape[Axis::kTensor];
    for (auto rank = world->rank() % stride; rank < world->size(); rank += stride) want += rank;
    EXPECT_EQ(sum.item<std::int64_t>(), want);
    shape[Axis::kPipe] = 2;
    EXPECT_THROW(Mesh(world, shape), std::invalid_argument);
  });
}

TEST_P(Communicators, RefusesArgumentsThatNoRankCouldAccept) {
  run([&](const CommunicatorPtr& world) {
    EXPECT_THROW((void)world->all_reduce(at::Tensor(), Reduction::kSum), std::invalid_argument);
    EXPECT_THROW((void)world->all_reduce(at::zeros({4}, at::kHalf), Reduction::kSum), std::invalid_argument);
    EXPECT_THROW((void)world->all_reduce(at::zeros({4, 4}).t().narrow(0, 0, 2), Reduction::kSum),
                 std::invalid_argument);
    EXPECT_THROW((void)world->broadcast(at::zeros({4}), world->size()), std::invalid_argument);
    EXPECT_THROW((void)world->broadcast(at::zeros({4}), -1), std::invalid_argument);
    world->barrier().wait();  // still in step
  });
}

// K11: a launch that waited for its peers would take as long as the last of them is late.
TEST_P(Communicators, LaunchingDoesNotWaitForPeers) {
  constexpr auto kLate = std::chrono::milliseconds(300);
  run([&](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({100'000});
    world->barrier().wait();
    if (world->rank() != 0) std::this_thread::sleep_for(kLate);
    const auto start = std::chrono::steady_clock::now();
    Work work = world->all_reduce(tensor, Reduction::kSum);
    EXPECT_LT(std::chrono::steady_clock::now() - start, kLate / 2);
    work.wait();
    EXPECT_EQ(tensor[0].item<float>(), world->size());
  });
}

}  // namespace
}  // namespace phalanx::testing
