// SPDX-License-Identifier: Apache-2.0
// Tests of all_to_all.
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <numeric>

#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Exchanging : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Exchanging, ::testing::ValuesIn(world_sizes()), ranks_of);

using Sizes = std::vector<std::int64_t>;

// Returns the elements that `from` sends to `to`.
at::Tensor part(int from, int to, std::int64_t elements, at::ScalarType dtype) {
  return input_of(from * 8 + to, elements, dtype);
}

// `count(from, to)` returns the number of elements of a part.
template <class Count>
void all_to_all(Communicator& world, Arena& arena, const Count& count, bool even, at::ScalarType dtype,
                const std::string& where) {
  arena.reset();
  Sizes outgoing, incoming;
  std::vector<at::Tensor> sent, want;
  for (int peer = 0; peer < world.size(); ++peer) {
    outgoing.push_back(count(world.rank(), peer));
    incoming.push_back(count(peer, world.rank()));
    sent.push_back(part(world.rank(), peer, outgoing.back(), dtype));
    want.push_back(part(peer, world.rank(), incoming.back(), dtype));
  }
  const auto all = at::concat(sent), wanted = at::concat(want);
  const auto input = arena.take(all), output = arena.take(wanted.numel(), dtype);
  world.all_to_all(output, input, even ? Counts() : incoming, even ? Counts() : outgoing).wait();
  EXPECT_TRUE(at::equal(output, wanted)) << about(all.numel(), dtype) << (even ? "" : ", uneven") << where;
  EXPECT_TRUE(at::equal(input, all)) << "the input must not change";
  EXPECT_TRUE(arena.guards_are_intact()) << about(all.numel(), dtype) << where;
}

TEST_P(Exchanging, EqualParts) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      for (const auto dtype : all_dtypes()) {
        for (const auto elements : {0, 1, 257}) {
          all_to_all(*world, arena, [&](int, int) { return elements; }, true, dtype, where);
        }
      }
      for (const auto elements : kMany) {
        all_to_all(*world, arena, [&](int, int) { return elements / world->size() + 1; }, true, at::kFloat, where);
      }
    });
  });
}

TEST_P(Exchanging, UnevenParts) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 6 << 20, [&](Arena& arena, const std::string& where) {
      for (const auto dtype : all_dtypes()) {
        all_to_all(*world, arena, [&](int from, int to) { return (from * 3 + to * 5) % 7; }, false, dtype, where);
      }
      for (const std::int64_t scale : {100, 9000}) {
        all_to_all(
            *world, arena, [&](int from, int to) { return (from * 3 + to * 5) % 7 * scale; }, false, at::kInt, where);
      }
    });
  });
}

// One rank sends everything to one other rank; all other parts are empty.
TEST_P(Exchanging, OnePartAlone) {
  run([](const CommunicatorPtr& world) {
    in_all_memory(*world, 1 << 20, [&](Arena& arena, const std::string& where) {
      const int last = world->size() - 1;
      all_to_all(
          *world, arena, [&](int from, int to) { return from == last && to == 0 ? 50'000 : 0; }, false, at::kDouble,
          where);
      all_to_all(*world, arena, [](int, int) { return 0; }, false, at::kDouble, where);
    });
  });
}

}  // namespace
}  // namespace phalanx::testing
