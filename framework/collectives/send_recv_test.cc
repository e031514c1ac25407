// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/send_recv.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

at::Tensor filled(std::int64_t elements, std::int64_t value) { return at::full({elements}, value, c10::kLong); }

TEST(SendRecv, ReplacesElementsByThoseOfThePeer) {
  for (const int ranks : {1, 2, 5}) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
      const int rank = world->rank(), right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
      for (const std::int64_t elements : {0, 1, 1000, 300'000}) {
        const at::Tensor tensor = filled(elements, rank);
        send_recv(*world, tensor, right, left, 7).wait();
        EXPECT_TRUE(at::equal(tensor, filled(elements, left)));
      }
    });
  }
}

TEST(SendRecv, TensorsMayDiffer) {
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    const int rank = world->rank(), right = (rank + 1) % 3, left = (rank + 2) % 3;
    const at::Tensor input = filled(left + 1, -1);
    send_recv(*world, input, filled(rank + 1, rank), right, left).wait();
    EXPECT_TRUE(at::equal(input, filled(left + 1, left)));
  });
}

TEST(SendRecv, IsNotOrderedWithOtherOperations) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const int peer = 1 - world->rank();
    const at::Tensor tensor = filled(10, world->rank()), sum = filled(10, 1);
    if (world->rank() == 0) {
      Work reduced = world->all_reduce(sum, Reduction::kSum);
      Work replaced = send_recv(*world, tensor, peer, peer);
      replaced.wait();
      reduced.wait();
    } else {
      Work replaced = send_recv(*world, tensor, peer, peer);
      world->all_reduce(sum, Reduction::kSum).wait();
      replaced.wait();
      EXPECT_TRUE(replaced.done());
    }
    EXPECT_TRUE(at::equal(tensor, filled(10, peer)));
    EXPECT_TRUE(at::equal(sum, filled(10, 2)));
  });
}

TEST(SendRecv, RefusesBeforeAnythingIsSent) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const at::Tensor tensor = filled(10, world->rank());
    const int peer = 1 - world->rank();
    const auto refuses = [&](const at::Tensor& input, const at::Tensor& output, int to, int from, int tag) {
      EXPECT_THROW(static_cast<void>(send_recv(*world, input, output, to, from, tag)), std::invalid_argument);
    };
    refuses(tensor, filled(10, 0), 2, peer, 0);
    refuses(tensor, filled(10, 0), peer, -1, 0);
    refuses(tensor, filled(10, 0), peer, peer, -1);
    refuses(tensor, at::Tensor(), peer, peer, 0);
    refuses(tensor, tensor, peer, peer, 0);
    refuses(tensor.narrow(0, 0, 5), tensor.narrow(0, 2, 5), peer, peer, 0);
    send_recv(*world, tensor, peer, peer).wait();
    EXPECT_TRUE(at::equal(tensor, filled(10, peer)));
  });
}

}  // namespace
}  // namespace phalanx::testing
