// SPDX-License-Identifier: Apache-2.0
// Tests what DistributedDataParallel refuses, and what it says when a program or a peer fails.
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <optional>
#include <string>
#include <utility>

#include "phalanx/distributed_data_parallel.h"
#include "phalanx/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::loss_of;
using testing::message_of;
using testing::Net;
using testing::own_rows;
using testing::run_worlds;
using Options = DistributedDataParallelOptions;

TEST(DistributedDataParallel, SaysThatAStepWasNotCompleted) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "local_sgd"});
    loss_of(net, own_rows(0, world)).backward();
    EXPECT_THAT(message_of<Error>([&] { loss_of(net, own_rows(1, world)).backward(); }), HasSubstr("after_step()"));
    ddp.after_step();
    loss_of(net, own_rows(1, world)).backward();
  });
}

TEST(DistributedDataParallel, SaysThatAParameterHasLeftItsBucket) {
  run_worlds(1, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "local_sgd"});
    net.to(at::kDouble);
    EXPECT_THAT(message_of<Error>([&] { ddp.after_step(); }), HasSubstr("has been given other memory"));
  });
}

std::string refusal(const Options& options, int ranks = 2) {
  std::string message;
  run_worlds(ranks, [&](World& world) {
    Net net;
    auto own = message_of<ConfigError>([&] { DistributedDataParallel(net, world, options); });
    if (world.rank() == 0) message = std::move(own);
  });
  return message;
}

TEST(DistributedDataParallel, RefusesOptionsThatDoNotFit) {
  EXPECT_THAT(refusal({.strategy = "overlaped"}), HasSubstr("did you mean \"overlapped\""));
  EXPECT_THAT(refusal({.strategy = "local_sgd", .strategy_options = {{"evry", "2"}}}), HasSubstr("every"));
  EXPECT_THAT(refusal({.strategy_options = {{"every", "2"}}}), HasSubstr("name it instead of auto"));
  EXPECT_THAT(refusal({.strategy = "sharded", .strategy_options = {{"stage", "3"}}}), HasSubstr("use stage 2"));
  EXPECT_THAT(refusal({.compression = "zip"}), HasSubstr("compression"));
  EXPECT_THAT(refusal({.bucket_bytes = -1}), HasSubstr("bucket_bytes"));
  EXPECT_THAT(refusal({.strategy = "local_sgd", .uneven_inputs = true}), HasSubstr("uneven_inputs"));
  EXPECT_THAT(refusal({.strategy = "single"}), HasSubstr("one rank"));
}

TEST(DistributedDataParallel, RefusesModulesThatCannotBeTrained) {
  run_worlds(2, [](World& world) {
    Net net;
    for (auto& parameter : net.parameters()) parameter.requires_grad_(false);
    EXPECT_THAT(message_of<ConfigError>([&] { DistributedDataParallel(net, world); }),
                HasSubstr("no parameters that require gradients"));
    torch::nn::Linear layer(2, world.rank() + 1);
    EXPECT_THAT(message_of<ConfigError>([&] { DistributedDataParallel(layer, world); }),
                HasSubstr("rank 1 has parameter weight [2, 2] Float on cpu, "
                          "but rank 0 has parameter weight [1, 2] Float on cpu"));
  });
}

TEST(DistributedDataParallel, RefusesOptionsThatDifferBetweenRanks) {
  run_worlds(2, [](World& world) {
    Net net;
    const Options options{.find_unused_parameters = world.rank() == 1};
    EXPECT_THAT(message_of<ConfigError>([&] { DistributedDataParallel(net, world, options); }),
                HasSubstr("rank 1 has find_unused_parameters on"));
  });
}

TEST(DistributedDataParallel, JoinNeedsItsOption) {
  run_worlds(1, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world);
    EXPECT_THAT(message_of<ConfigError>([&] { ddp.join(); }), HasSubstr("uneven_inputs"));
  });
}

TEST(DistributedDataParallel, ALostRankIsAnExceptionOfBackward) {
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    testing::run_ranks("inproc", 2, [&](CommunicatorPtr communicator) {
      std::optional<World> world(std::move(communicator));
      Net net;
      std::optional<DistributedDataParallel> ddp(std::in_place, net, *world, Options{.strategy = strategy});
      if (world->rank() == 1) return;
      const auto rows = own_rows(0, *world);
      try {
        loss_of(net, rows).backward();
        FAIL() << "rank 1 has left";
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
      }
    });
  }
}

}  // namespace
}  // namespace phalanx
