// SPDX-License-Identifier: Apache-2.0
// Tests of all_reduce, reduce and reduce_scatter.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <span>

#include "framework/comm/operations/part_layout.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Reducing : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Reducing, ::testing::ValuesIn(world_sizes()), ranks_of);

// Calls `body` with all sizes of kFew for the first reduction of each dtype, and with the largest size for the other
// reductions, since the effect of a size does not depend on how two elements are combined.
template <class Body>
void with_every_dtype(const Body& body) {
  for (const auto dtype : all_dtypes()) {
    const auto operations = reductions_of(dtype);
    for (const auto elements : kFew) body(operations.front(), elements, dtype);
    for (const auto& op : std::span(operations).subspan(1)) body(op, kFew.back(), dtype);
  }
}

void all_reduce(Communicator& world, Arena& arena, const Reduction& op, std::int64_t elements, at::ScalarType dtype,
                const std::string& where) {
  arena.reset();
  const auto tensor = arena.take(input_of(world.rank(), elements, dtype, op));
  world.all_reduce(tensor, op).wait();
  EXPECT_TRUE(at::equal(tensor, reduced(world.size(), elements, dtype, op))) << about(op, elements, dtype) << where;
  EXPECT_TRUE(arena.guards_are_intact()) << about(op, elements, dtype) << where;
}

TEST_P(Reducing, AllReduceCombinesEveryDtype) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 16 << 10, [&](Arena& arena, const std::string& where) {
      with_every_dtype(
          [&](const auto& op, auto elements, auto dtype) { all_reduce(*world, arena, op, elements, dtype, where); });
    });
  });
}

TEST_P(Reducing, AllReduceCombinesEverySize) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 2 << 20, [&](Arena& arena, const std::string& where) {
      for (const auto dtype : {at::kHalf, at::kFloat, at::kLong}) {
        for (const auto elements : kMany) {
          all_reduce(*world, arena, Reduction::kSum, elements, dtype, where);
        }
      }
      all_reduce(*world, arena, reductions_of(at::kInt).back(), 150'001, at::kInt, where);
    });
  });
}

// The sum of these values depends on the order of addition.
TEST_P(Reducing, AllReduceGivesEveryRankTheSameBits) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 1 << 20, [&](Arena& arena, const std::string& where) {
      for (const std::int64_t elements : {1, 1000, 100'000}) {
        arena.reset();
        const auto tensor =
            arena.take(at::arange(elements, at::kFloat).sin_().mul_(1e3 * (world->rank() + 1)).add_(1e-3));
        world->all_reduce(tensor, Reduction::kMean).wait();
        const at::Tensor root = tensor.clone();
        world->broadcast(root, 0).wait();
        EXPECT_TRUE(at::equal(tensor, root)) << elements << " elements" << where;
      }
    });
  });
}

TEST_P(Reducing, ManyDimensionsAreOneRun) {
  run([](const CommunicatorPtr& world) {
    const at::Tensor tensor = at::full({3, 4, 5}, world->rank() + 1, at::kDouble);
    world->all_reduce(tensor, Reduction::kMax).wait();
    EXPECT_TRUE(at::equal(tensor, at::full({3, 4, 5}, world->size(), at::kDouble)));
  });
}

void reduce(Communicator& world, Arena& arena, const Reduction& op, std::int64_t elements, at::ScalarType dtype,
            int root, const std::string& where) {
  arena.reset();
  const auto input = input_of(world.rank(), elements, dtype, op);
  const auto tensor = arena.take(input);
  world.reduce(tensor, op, root).wait();
  const bool here = world.rank() == root;
  EXPECT_TRUE(at::equal(tensor, here ? reduced(world.size(), elements, dtype, op) : input))
      << about(op, elements, dtype) << " at rank " << root << where
      << (here ? "" : ": tensors of other ranks must not change");
  EXPECT_TRUE(arena.guards_are_intact()) << about(op, elements, dtype) << where;
}

TEST_P(Reducing, ReduceCombinesEveryDtypeOnRootAlone) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 16 << 10, [&](Arena& arena, const std::string& where) {
      int root = 0;
      with_every_dtype([&](const auto& op, auto elements, auto dtype) {
        reduce(*world, arena, op, elements, dtype, root++ % world->size(), where);
      });
    });
  });
}

TEST_P(Reducing, ReduceCombinesEverySizeOnEveryRoot) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 2 << 20, [&](Arena& arena, const std::string& where) {
      for (int root = 0; root < world->size(); ++root) {
        for (const auto elements : {7, 65'537})
          reduce(*world, arena, Reduction::kSum, elements, at::kFloat, root, where);
      }
      for (const auto elements : kMany) reduce(*world, arena, Reduction::kMean, elements, at::kLong, 0, where);
    });
  });
}

// Each part has `elements` elements, or the number given in `counts`.
void reduce_scatter(Communicator& world, Arena& arena, const Reduction& op, Counts counts, std::int64_t elements,
                    at::ScalarType dtype, const std::string& where) {
  arena.reset();
  const PartLayout parts(counts, world.size(), elements * world.size());
  const auto what = input_of(world.rank(), parts.total(), dtype, op);
  const auto input = arena.take(what), output = arena.take(parts.count(world.rank()), dtype);
  world.reduce_scatter(output, input, op, counts).wait();
  const auto want = parts.of(reduced(world.size(), parts.total(), dtype, op), world.rank());
  EXPECT_TRUE(at::equal(output, want)) << about(op, parts.total(), dtype) << where;
  EXPECT_TRUE(at::equal(input, what)) << about(op, parts.total(), dtype) << where << ": the input must not change";
  EXPECT_TRUE(arena.guards_are_intact()) << about(op, parts.total(), dtype) << where;
}

TEST_P(Reducing, ReduceScatterCombinesEveryDtype) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 128 << 10, [&](Arena& arena, const std::string& where) {
      with_every_dtype([&](const auto& op, auto elements, auto dtype) {
        reduce_scatter(*world, arena, op, {}, elements, dtype, where);
        if (elements == 0) reduce_scatter(*world, arena, op, uneven_counts(world->size(), 50), 0, dtype, where);
      });
    });
  });
}

TEST_P(Reducing, ReduceScatterCombinesEverySize) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      for (const auto elements : kMany) {
        reduce_scatter(*world, arena, Reduction::kMean, {}, elements / world->size() + 1, at::kFloat, where);
      }
      reduce_scatter(*world, arena, Reduction::kSum, uneven_counts(world->size(), 70'000), 0, at::kFloat, where);
      const std::vector<std::int64_t> nothing(world->size());
      reduce_scatter(*world, arena, Reduction::kSum, nothing, 0, at::kFloat, where);
    });
  });
}

TEST_P(Reducing, ReduceScatterMayLeaveItsOutputInItsInput) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      for (const std::int64_t scale : {8, 4000, 100'000}) {
        for (const auto& counts : {uneven_counts(world->size(), scale), std::vector<std::int64_t>{}}) {
          arena.reset();
          const PartLayout parts(counts, world->size(), scale / 8 * world->size());
          const auto what = input_of(world->rank(), parts.total(), at::kInt);
          const auto input = arena.take(what);
          const auto output = parts.of(input, world->rank());
          world->reduce_scatter(output, input, Reduction::kSum, counts).wait();
          const auto all = reduced(world->size(), parts.total(), at::kInt, Reduction::kSum);
          for (int rank = 0; rank < world->size(); ++rank) {
            const bool mine = rank == world->rank();
            EXPECT_TRUE(at::equal(parts.of(input, rank), parts.of(mine ? all : what, rank)))
                << "part " << rank << " of rank " << world->rank() << where;
          }
          EXPECT_TRUE(arena.guards_are_intact());
        }
      }
    });
  });
}

}  // namespace
}  // namespace phalanx::testing
