// The reduction and the algorithm in docs/communication.md work as described there.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "framework/collectives/selection/selecting_communicator.h"
#include "framework/testing/worlds.h"
#include "tests/readme/examples/larger_magnitude.h"

namespace phalanx {
namespace {

TEST(Communication, AReductionOfOnesOwn) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const float elements[3][2] = {{1, -2}, {-3, 2}, {2, 0}};
    at::Tensor tensor = at::tensor({elements[world->rank()][0], elements[world->rank()][1]});
    world->all_reduce(tensor, larger_magnitude()).wait();
    EXPECT_EQ(tensor[0].item<float>(), -3);
    EXPECT_EQ(tensor[1].item<float>(), -2);
  });
}

TEST(Communication, AnAlgorithmOfOnesOwn) {
  testing::run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    SelectingCommunicator group(world, SelectionTable{{.op = "broadcast", .algorithm = "relay"}});
    for (int root = 0; root < 4; ++root) {
      at::Tensor tensor = at::full({1000}, world->rank());
      group.broadcast(tensor, root).wait();
      EXPECT_EQ(tensor[999].item<float>(), root);
    }
    int messages = 0;
    for (const auto& record : world->recorder().records()) messages += record.call.op == Op::kSend;
    EXPECT_EQ(messages, 3) << "each rank hands on as often as it is not the last";
  });
}

}  // namespace
}  // namespace phalanx
