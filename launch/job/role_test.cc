// SPDX-License-Identifier: Apache-2.0
#include "launch/job/role.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/testing/worlds.h"
#include "launch/exit_status.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;
using ::testing::ThrowsMessage;

TEST(AssignRole, WithoutServersAllRanksTrain) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const Role role = assign_role(ExperimentConfig{}, world);
    EXPECT_EQ(role.world, world);
    EXPECT_EQ(role.training, 2);
    EXPECT_EQ(role.server, nullptr);
    EXPECT_EQ(role.servers, nullptr);
    EXPECT_EQ(role.presence, nullptr);
  });
}

TEST(AssignRole, ClientsCheckValuesIfMessagesAreChecked) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    for (const int servers : {0, 1}) {
      ExperimentConfig config;
      config.framework.checksums = true;
      config.roles.server = servers;
      const Role role = assign_role(config, world);
      if (role.server != nullptr) {
        EXPECT_EQ(serve(role, Seconds(60)), kDone);
        continue;
      }
      ASSERT_NE(role.servers, nullptr);
      EXPECT_EQ(role.servers->list().servers.size(), static_cast<std::size_t>(servers));
      EXPECT_TRUE(role.servers->list().checksums);
    }
  });
}

TEST(AssignRole, TheLastRanksServeUntilTheOthersHaveLeft) {
  ExperimentConfig config;
  config.roles.server = 1;
  std::atomic<int> present = 0;
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    const Role role = assign_role(config, world);
    EXPECT_EQ(role.training, 2);
    if (world->rank() == 2) {
      ASSERT_NE(role.server, nullptr);
      EXPECT_EQ(role.world->size(), 1);
      EXPECT_EQ(serve(role, Seconds(60)), kDone);
      EXPECT_EQ(present, 0) << "left while ranks were still training";
      return;
    }
    EXPECT_EQ(role.server, nullptr);
    EXPECT_EQ(role.world->size(), 2);
    ASSERT_NE(role.servers, nullptr);
    EXPECT_EQ(role.servers->list().servers.size(), 1u);
    ++present;
    role.world->barrier().wait();
    --present;
  });
}

TEST(AssignRole, AServerDoesNotWaitForeverForRanks) {
  ExperimentConfig config;
  config.roles.server = 1;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Role role = assign_role(config, world);
    if (role.server == nullptr) {
      world->barrier().wait();
      return;
    }
    role.training = 2;  // one more than there are
    EXPECT_THAT([&] { (void)serve(role, Seconds(0.2)); },
                ThrowsMessage<CommError>(HasSubstr("not all of the 2 ranks that train have connected")));
    world->barrier().wait();
  });
}

// Ends the role of a rank as an exception does that ends its training.
void abandon(Role role) {
  try {
    const Role own = std::move(role);
    throw std::runtime_error("the end of training");
  } catch (const std::runtime_error&) {
  }
}

// Blocks until the rank notices that another one is lost. Returns false if that takes more than 30 s.
bool notices_a_loss(const Role& role) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    try {
      role.presence->check();
    } catch (const CommError& error) {
      return error.kind() == CommError::Kind::kPeerLost;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(AssignRole, AServerGoesOnInAWorldWithoutALostRank) {
  ExperimentConfig config;
  config.roles.server = 1;
  run_ranks("inproc", 3, [&](CommunicatorPtr world) {
    KeptRole kept;
    Role role = assign_role(config, world, nullptr, &kept);
    EXPECT_EQ(kept.generation, 1);
    world->barrier().wait();
    if (world->rank() == 1) return abandon(std::move(role));
    const auto* const server = role.server.get();
    if (server != nullptr) {
      EXPECT_THAT([&] { (void)serve(role, Seconds(60)); }, ThrowsMessage<CommError>(HasSubstr("has ended without")));
      role = {};
    } else {
      EXPECT_TRUE(notices_a_loss(role));
      abandon(std::move(role));
    }
    world = world->shrink();
    Role next = assign_role(config, world, nullptr, &kept);
    EXPECT_EQ(next.training, 1);
    EXPECT_EQ(kept.generation, 2);
    EXPECT_EQ(next.server.get(), server) << "with its tables";
    if (next.server != nullptr) {
      EXPECT_EQ(serve(next, Seconds(60)), kDone);
    } else {
      EXPECT_EQ(next.servers->list().generation, 2);
    }
  });
}

TEST(AssignRole, ARankMustBeLeftToTrain) {
  ExperimentConfig config;
  config.roles.server = 2;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    EXPECT_THAT([&] { (void)assign_role(config, world); },
                ThrowsMessage<ConfigError>("roles.server: 2 of 2 ranks leaves no rank to train"));
  });
}

TEST(AssignRole, ServersElsewhereServeAllRanks) {
  const testing::Scratch scratch;
  const std::string secret = scratch.path("secret");
  std::ofstream(secret) << "a secret of more than sixteen letters";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  ExperimentConfig config;
  config.roles.servers_at = {"10.0.0.1:4711", "10.0.0.2:4711"};
  config.roles.secret_file = secret;
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Role role = assign_role(config, world);
    EXPECT_EQ(role.world, world);
    EXPECT_EQ(role.server, nullptr);
    ASSERT_NE(role.servers, nullptr);
    EXPECT_EQ(role.servers->list().servers.size(), 2u);
  });
  config.roles.servers_file = scratch.path("no such file");
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    EXPECT_THAT([&] { (void)assign_role(config, world); },
                ThrowsMessage<ConfigError>(::testing::StartsWith("roles.servers_file: ")));
  });
}

}  // namespace
}  // namespace phalanx
