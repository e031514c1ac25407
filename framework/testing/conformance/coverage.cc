// SPDX-License-Identifier: Apache-2.0
// Runs every operation that exists on this backend.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "framework/base/error.h"
#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

class Coverage : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Coverage, ::testing::ValuesIn(world_sizes()), ranks_of);

// Runs `op` once and returns true if the result is correct. There is no default, so the compiler reports an operation
// that was added to Op but not here.
bool works(Op op, Communicator& world) {
  const int size = world.size(), here = world.rank(), last = size - 1;
  const at::Tensor mine = at::full({2}, here, at::kLong), sevens = at::full({2 * size}, 7, at::kLong);
  const at::Tensor one = at::zeros({2}, at::kLong), all = at::zeros({2 * size}, at::kLong);
  const auto holds = [](const at::Tensor& tensor, std::int64_t value) {
    return at::equal(tensor, at::full_like(tensor, value));
  };
  switch (op) {
    case Op::kNone:
      return true;
    case Op::kBroadcast:
      world.broadcast(mine, last).wait();
      return holds(mine, last);
    case Op::kReduce:
      world.reduce(mine, Reduction::kMax, 0).wait();
      return holds(mine, here == 0 ? last : here);
    case Op::kAllReduce:
      world.all_reduce(mine, Reduction::kMax).wait();
      return holds(mine, last);
    case Op::kReduceScatter:
      world.reduce_scatter(one, sevens, Reduction::kSum).wait();
      return holds(one, 7 * size);
    case Op::kAllGather:
      world.all_gather(all, mine).wait();
      return all[0].item<std::int64_t>() == 0 && all[-1].item<std::int64_t>() == last;
    case Op::kGather:
      world.gather(all, mine, last).wait();
      return here != last || all[-1].item<std::int64_t>() == last;
    case Op::kScatter:
      world.scatter(one, sevens, last).wait();
      return holds(one, 7);
    case Op::kAllToAll:
      world.all_to_all(all, sevens).wait();
      return holds(all, 7);
    case Op::kSend:
    case Op::kRecv: {
      Work send = world.send(mine, (here + 1) % size);
      world.recv(one, (here + last) % size).wait();
      send.wait();
      return holds(one, (here + last) % size);
    }
    case Op::kBarrier:
      world.barrier().wait();
      return true;
    case Op::kSplit:
      return world.split(0, 0)->size() == size;
    case Op::kShrink:
      return world.split(0, 0)->shrink()->size() == size;
    case Op::kAllocate:
      return holds(world.allocate({5}, at::kLong), 0);
    case Op::kAllocateShared: {
      const at::Tensor shared = world.allocate_shared({size}, at::kLong);
      shared[here] = here;
      world.barrier().wait();
      return shared[last].item<std::int64_t>() == last;
    }
    case Op::kCustom:
      world.run({.op = Op::kCustom}, [&] { one.fill_(1); }).wait();
      return holds(one, 1);
  }
  return false;
}

// Returns true if the backend cannot shrink groups, such as mpi without ULFM.
bool refuses_to_shrink(Communicator& world) {
  const std::string backend = kBackend;
  if (world.why_no_shrink().empty()) {
    EXPECT_NE(backend, "mpi");
    return false;
  }
  EXPECT_TRUE(backend != "inproc" && backend != "shm" && backend != "gloo");
  EXPECT_THROW((void)world.split(0, 0)->shrink(), ConfigError);
  return true;
}

TEST_P(Coverage, EveryOperationWorksAndIsRecorded) {
  run([](const CommunicatorPtr& world) {
    for (int i = 0; i <= static_cast<int>(Op::kCustom); ++i) {
      const auto op = static_cast<Op>(i);
      if (op == Op::kAllocateShared && !world->shares_memory()) continue;  // memory.cc tests that it is refused
      if (op == Op::kShrink && refuses_to_shrink(*world)) continue;
      EXPECT_TRUE(works(op, *world)) << to_string(op);
      const auto records = world->recorder().records();
      EXPECT_TRUE(op == Op::kNone || std::ranges::any_of(records,
                                                         [&](const auto& record) {
                                                           return record.call.op == op &&
                                                                  record.state == FlightRecorder::State::kDone;
                                                         }))
          << to_string(op);
    }
  });
}

}  // namespace
}  // namespace phalanx::testing
