// SPDX-License-Identifier: Apache-2.0
// Tests of run(), which executes a function of the caller as an operation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Bodies : public Suite {
 protected:
  static inline const Call kCall{.elements = 1, .tag = 42, .op = Op::kCustom, .dtype = at::kLong};
};
INSTANTIATE_TEST_SUITE_P(Ranks, Bodies, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Bodies, TakeTheirTurn) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({2000}, 1, at::kLong);
    std::int64_t seen = 0;
    Work before = world->all_reduce(tensor, Reduction::kSum);
    Work body = world->run(kCall, [&] {
      seen = tensor[0].item<std::int64_t>();
      tensor.fill_(world->rank());
    });
    Work after = world->all_reduce(tensor, Reduction::kMax);
    after.wait();
    EXPECT_TRUE(body.done());
    EXPECT_EQ(seen, world->size());
    EXPECT_EQ(tensor[1999].item<std::int64_t>(), world->size() - 1);
  });
}

// A ring of sends and receives, as in algorithms, between collectives outside and with one collective inside.
TEST_P(Bodies, MaySendReceiveAndCallCollectives) {
  run([](const CommunicatorPtr& world) {
    const auto half = world->split(world->rank() % 2, 0);
    const int size = world->size(), right = (world->rank() + 1) % size, left = (world->rank() + size - 1) % size;
    at::Tensor sum = at::zeros({3000}, at::kLong), pairs = at::full({1}, 1, at::kLong);
    std::vector<Work> works;
    works.push_back(world->barrier());
    works.push_back(world->run(kCall, [&] {
      at::Tensor passing = at::full({3000}, world->rank(), at::kLong), next = at::zeros({3000}, at::kLong);
      for (int i = 0; i < size; ++i) {
        sum += passing;
        Work send = world->send(passing, right, kMaxTag + 1);
        world->recv(next, left, kMaxTag + 1).wait();
        send.wait();
        passing.copy_(next);
      }
      world->all_reduce(sum, Reduction::kMin).wait();
      half->all_reduce(pairs, Reduction::kSum).wait();
    }));
    works.push_back(world->all_reduce(sum, Reduction::kSum));
    wait_all(works);
    EXPECT_TRUE(at::equal(sum, at::full({3000}, size * size * (size - 1) / 2, at::kLong)));
    EXPECT_EQ(pairs.item<std::int64_t>(), half->size());
  });
}

TEST_P(Bodies, Nest) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({10}, 1, at::kLong);
    Work outer = world->run(kCall, [&] {
      Work inner = world->run(kCall, [&] {
        world->all_reduce(tensor, Reduction::kSum).wait();
        tensor.add_(world->rank());
      });
      Work other = world->all_reduce(tensor, Reduction::kMax);
      other.wait();
    });
    Work later = world->all_reduce(tensor, Reduction::kSum);
    later.wait();
    EXPECT_EQ(tensor[9].item<std::int64_t>(), (2 * world->size() - 1) * world->size());
  });
}

TEST_P(Bodies, KeepTheirErrors) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({10}, 1, at::kLong);
    Work bad = world->run(kCall, [] { throw std::out_of_range("of the body"); });
    Work good = world->all_reduce(tensor, Reduction::kSum);
    EXPECT_NO_THROW(good.wait());
    EXPECT_THROW(bad.wait(), std::out_of_range);
    EXPECT_EQ(tensor[0].item<std::int64_t>(), world->size());
    world->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
