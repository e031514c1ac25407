// SPDX-License-Identifier: Apache-2.0
// Tests of broadcast, all_gather, gather and scatter.
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "framework/comm/operations/part_layout.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Gathering : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Gathering, ::testing::ValuesIn(world_sizes()), ranks_of);

void broadcast(Communicator& world, Arena& arena, std::int64_t elements, at::ScalarType dtype, int root,
               const std::string& where) {
  arena.reset();
  const auto tensor = arena.take(input_of(world.rank(), elements, dtype));
  world.broadcast(tensor, root).wait();
  EXPECT_TRUE(at::equal(tensor, input_of(root, elements, dtype)))
      << about(elements, dtype) << " from rank " << root << where;
  EXPECT_TRUE(arena.guards_are_intact()) << about(elements, dtype) << where;
}

TEST_P(Gathering, BroadcastGivesRootsElements) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 2 << 20, [&](Arena& arena, const std::string& where) {
      for (int root = 0; root < world->size(); ++root) {
        for (const auto dtype : all_dtypes()) {
          for (const auto elements : kFew) broadcast(*world, arena, elements, dtype, root, where);
        }
      }
      for (const auto elements : kMany) {
        broadcast(*world, arena, elements, at::kDouble, static_cast<int>(elements % world->size()), where);
      }
    });
  });
}

// The inputs of all ranks, concatenated. The sizes are `counts`, or `elements` each.
struct Gathered {
  Gathered(int ranks, Counts counts, std::int64_t elements, at::ScalarType dtype)
      : parts(counts, ranks, elements * ranks) {
    std::vector<at::Tensor> each;
    for (int rank = 0; rank < ranks; ++rank) each.push_back(input_of(rank, parts.count(rank), dtype));
    all = at::concat(each);
  }
  at::Tensor part(int rank) const { return parts.of(all, rank); }

  PartLayout parts;
  at::Tensor all;
};

// Calls body(counts, elements, dtype) for every dtype and size, with even and uneven counts.
template <class Body>
void each_shape(int ranks, const Body& body) {
  for (const auto dtype : all_dtypes()) {
    for (const auto elements : kFew) body(Counts(), elements, dtype);
    body(uneven_counts(ranks, 40), 0, dtype);
  }
  for (const auto elements : kMany) body(Counts(), elements / ranks + 1, at::kFloat);
  body(uneven_counts(ranks, 70'000), 0, at::kFloat);
  body(std::vector<std::int64_t>(ranks), 0, at::kFloat);
}

TEST_P(Gathering, AllGatherGivesEveryRanksElements) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      each_shape(world->size(), [&](Counts counts, std::int64_t elements, at::ScalarType dtype) {
        arena.reset();
        const Gathered want(world->size(), counts, elements, dtype);
        const auto input = arena.take(want.part(world->rank())), output = arena.take(want.all.numel(), dtype);
        world->all_gather(output, input, counts).wait();
        EXPECT_TRUE(at::equal(output, want.all)) << about(want.all.numel(), dtype) << where;
        EXPECT_TRUE(at::equal(input, want.part(world->rank()))) << "the input must not change";
        EXPECT_TRUE(arena.guards_are_intact()) << about(want.all.numel(), dtype) << where;
      });
    });
  });
}

TEST_P(Gathering, AllGatherMayFindItsInputInItsOutput) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      each_shape(world->size(), [&](Counts counts, std::int64_t elements, at::ScalarType dtype) {
        arena.reset();
        const Gathered want(world->size(), counts, elements, dtype);
        const auto output = arena.take(want.all.numel(), dtype);
        const auto input = want.parts.of(output, world->rank()).copy_(want.part(world->rank()));
        world->all_gather(output, input, counts).wait();
        EXPECT_TRUE(at::equal(output, want.all)) << about(want.all.numel(), dtype) << where;
        EXPECT_TRUE(arena.guards_are_intact()) << about(want.all.numel(), dtype) << where;
      });
    });
  });
}

// Tests every root. Every second time, the root's input lies inside its output.
TEST_P(Gathering, GatherGivesEveryRanksElementsToRoot) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      int turn = 0;
      each_shape(world->size(), [&](Counts counts, std::int64_t elements, at::ScalarType dtype) {
        for (const bool in_place : {false, true}) {
          arena.reset();
          const int root = turn++ % world->size();
          const bool here = world->rank() == root;
          const Gathered want(world->size(), counts, elements, dtype);
          const auto output = here ? arena.take(want.all.numel(), dtype) : at::Tensor();
          const auto mine = want.part(world->rank());
          const auto input = here && in_place ? want.parts.of(output, root).copy_(mine) : arena.take(mine);
          world->gather(output, input, root, counts).wait();
          if (here) {
            EXPECT_TRUE(at::equal(output, want.all)) << about(want.all.numel(), dtype) << " at " << root << where;
          } else {
            EXPECT_TRUE(at::equal(input, mine)) << "the input must not change";
          }
          EXPECT_TRUE(arena.guards_are_intact()) << about(want.all.numel(), dtype) << where;
        }
      });
    });
  });
}

TEST_P(Gathering, ScatterGivesEveryRankItsPart) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      int turn = 0;
      each_shape(world->size(), [&](Counts counts, std::int64_t elements, at::ScalarType dtype) {
        for (const bool in_place : {false, true}) {
          arena.reset();
          const int root = turn++ % world->size();
          const bool here = world->rank() == root;
          const Gathered want(world->size(), counts, elements, dtype);
          const auto input = here ? arena.take(want.all) : at::Tensor();
          const auto output =
              here && in_place ? want.parts.of(input, root) : arena.take(want.parts.count(world->rank()), dtype);
          world->scatter(output, input, root, counts).wait();
          EXPECT_TRUE(at::equal(output, want.part(world->rank())))
              << about(want.all.numel(), dtype) << " from " << root << where;
          if (here) {
            EXPECT_TRUE(at::equal(input, want.all)) << "the input must not change";
          }
          EXPECT_TRUE(arena.guards_are_intact()) << about(want.all.numel(), dtype) << where;
        }
      });
    });
  });
}

// On other ranks than the root, the other tensor may be anything.
TEST_P(Gathering, OnlyRootNeedsTheOtherTensor) {
  run([](const CommunicatorPtr& world) {
    const int root = world->size() - 1;
    const bool here = world->rank() == root;
    const Gathered want(world->size(), {}, 3, at::kFloat);
    at::Tensor other = here ? at::empty({3 * world->size()}) : at::zeros({5, 2}, at::kComplexDouble).t();
    world->gather(other, want.part(world->rank()), root).wait();
    if (here) {
      EXPECT_TRUE(at::equal(other, want.all));
    }
    const at::Tensor mine = at::empty({3});
    world->scatter(mine, other, root).wait();
    EXPECT_TRUE(at::equal(mine, want.part(world->rank())));
  });
}

}  // namespace
}  // namespace phalanx::testing
