// SPDX-License-Identifier: Apache-2.0
#include "phalanx/launch.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/testing/ports.h"
#include "launch/temporary_folder.h"
#include "phalanx/distributed_data_parallel.h"

namespace phalanx {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(int ranks, const std::function<void(World&)>& body) {
  try {
    launch(ranks, body, {.timeout = 20s});
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void require(bool condition) {
  if (!condition) throw std::runtime_error("it is not so");
}

TEST(Launch, RunsRanksInProcessesOfTheirOwn) {
  const TemporaryFolder folder;
  launch(3, [&](World& world) {
    const at::Tensor sum = at::full({1}, world.rank() + 1);
    world.communicator().all_reduce(sum, Reduction::kSum).wait();
    require(sum.item<int>() == 6 && world.local_size() == 3);
    std::ofstream(folder.path() + "/" + std::to_string(world.rank())) << ::getpid();
  });
  for (const char* rank : {"/0", "/1", "/2"}) {
    std::ifstream file(folder.path() + rank);
    pid_t process = 0;
    file >> process;
    EXPECT_GT(process, 0);
    EXPECT_NE(process, ::getpid());
  }
}

TEST(Launch, RanksTrainTogether) {
  launch(2, [](World& world) {
    torch::nn::Linear layer(3, 2);
    const DistributedDataParallel ddp(layer, world);
    torch::optim::SGD optimizer(layer->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      layer->forward(at::full({4, 3}, static_cast<double>(world.rank() + step))).square().mean().backward();
      optimizer.step();
    }
    const at::Tensor first = layer->weight.detach().clone();
    world.communicator().broadcast(first, 0).wait();
    require(first.equal(layer->weight));
  });
}

TEST(Launch, WorldsKnowTheHostsOfTheirRanks) {
  launch(3, [](World& world) {
    ::setenv("PHALANX_HOST_KEY", world.rank() < 2 ? "first" : "second", 1);
    const World placed(world.shared_communicator());
    require(placed.hosts() == 2 && placed.host() == world.rank() / 2);
    require(placed.local_rank() == world.rank() % 2 && placed.local_size() == (world.rank() < 2 ? 2 : 1));
  });
}

TEST(Init, MeetsAtAFileOrAPort) {
  const TemporaryFolder folder;
  const std::string file = "file://" + folder.path() + "/store";
  const std::string port = "tcp://127.0.0.1:" + std::to_string(testing::free_port());
  for (const auto& place : {file, port}) {
    launch(2, [&](World& world) {
      const int rank = 1 - world.rank();
      const World own = init({.init_method = place, .rank = rank, .world_size = 2, .timeout = 20s});
      require(own.rank() == rank && own.local_size() == 2);
      const at::Tensor sum = at::full({1}, rank);
      own.communicator().all_reduce(sum, Reduction::kSum).wait();
      require(sum.item<int>() == 1);
    });
  }
}

TEST(Init, ALostRankIsAnException) {
  const TemporaryFolder folder;
  launch(2, [&](World& world) {
    const std::string place = "file://" + folder.path() + "/store";
    std::optional<World> own(init({.init_method = place, .rank = world.rank(), .world_size = 2, .timeout = 20s}));
    if (world.rank() == 1) return own.reset();
    try {
      own->barrier();
    } catch (const CommError& error) {
      return require(error.kind() == CommError::Kind::kPeerLost);
    }
    require(false);
  });
}

TEST(Launch, ThrowsTheFirstCause) {
  const auto error = error_of(3, [](World& world) {
    if (world.rank() == 1) throw std::runtime_error("no more data");
    world.barrier();
  });
  EXPECT_THAT(error, HasSubstr("rank 1 of 3: no more data"));
}

TEST(Launch, SaysHowARankDied) {
  const auto error = error_of(2, [](World& world) {
    if (world.rank() == 0) ::kill(::getpid(), SIGKILL);
    world.barrier();
  });
  EXPECT_THAT(error, HasSubstr("rank 0 of 2: "));
  EXPECT_THAT(error, HasSubstr("SIGKILL"));
}

TEST(Launch, ErrorsOfConnectingAreThrownToo) {
  EXPECT_THROW(launch(2, [](World&) {}, {.backend = "inproc"}), Error);
  EXPECT_THROW(launch(0, [](World&) {}), std::invalid_argument);
}

TEST(Launch, RefusesToForkAProcessWithThreads) {
  std::promise<void> end;
  std::jthread other([&] { end.get_future().wait(); });
  EXPECT_THROW(launch(1, [](World&) {}), std::logic_error);
  end.set_value();
}

}  // namespace
}  // namespace phalanx
