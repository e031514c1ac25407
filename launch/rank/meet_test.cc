// SPDX-License-Identifier: Apache-2.0
// Connects processes that believe to be on several hosts (PHALANX_HOST_KEY), by all ways in which ranks meet.
#include "launch/rank/meet.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <string>

#include "framework/base/error.h"
#include "framework/comm/launch/host_network.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/store/broadcast_rendezvous.h"
#include "framework/comm/store/own_address.h"
#include "framework/comm/texts.h"
#include "framework/testing/ports.h"
#include "framework/testing/worlds.h"
#include "launch/rank/connect.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr Seconds kLong{30};
constexpr int kPerHost = 2;

// Makes the calling process one of several ranks on hosts of two.
RankInfo on_host(const CommunicatorPtr& world) {
  const int rank = world->rank(), size = world->size();
  ::setenv("PHALANX_HOST_KEY", ("host" + std::to_string(rank / kPerHost)).c_str(), 1);
  return {.rank = rank, .size = size, .local_rank = rank % kPerHost, .local_size = kPerHost};
}

Broadcast over(const CommunicatorPtr& world) {
  return [world](const std::string& text) { return broadcast_text(text, *world); };
}

LaunchEnvironment at(const RankInfo& rank_info, const std::string& url) {
  return {
      .launcher = "a test",
      .rank_info = rank_info,
      .rendezvous = url + "?rank=" + std::to_string(rank_info.rank) + "&world_size=" + std::to_string(rank_info.size),
      .job = "test"};
}

void expect_sum(Communicator& world) {
  const at::Tensor ones = at::full({100}, 1, at::kLong);
  world.all_reduce(ones, Reduction::kSum).wait();
  EXPECT_EQ(ones[99].item<std::int64_t>(), world.size());
}

bool has_address(const std::string& text) { return this_network().find(text) != nullptr; }

TEST(RendezvousByBroadcast, GivesAllRanksOneStore) {
  testing::run_ranks("shm", 4, [](const CommunicatorPtr& world) {
    const RankInfo rank_info = on_host(world);
    const Rendezvous met = rendezvous_by_broadcast(rank_info, over(world), "", kLong);
    EXPECT_EQ(met.rank, world->rank());
    EXPECT_EQ(met.host.empty(), world->rank() < kPerHost) << "rank 0's host knows nothing of the way to it";
    if (world->rank() == 3) met.store->set("note", "from 3");
    EXPECT_EQ(met.store->get("note"), "from 3");
    world->barrier().wait();
  });
}

TEST(RendezvousByBroadcast, ListensAtTheInterfaceThatIsSet) {
  testing::run_ranks("shm", 4, [](const CommunicatorPtr& world) {
    const RankInfo rank_info = on_host(world);
    const Rendezvous met = rendezvous_by_broadcast(rank_info, over(world), "lo", kLong);
    EXPECT_THAT(met.host, world->rank() < kPerHost ? ::testing::AnyOf("", "") : ::testing::AnyOf("127.0.0.1", "::1"));
    world->barrier().wait();
  });
}

TEST(RendezvousByBroadcast, AllRanksLearnWhyRankZeroCannotListen) {
  testing::run_ranks("shm", 2, [](const CommunicatorPtr& world) {
    EXPECT_THAT([&] { rendezvous_by_broadcast(on_host(world), over(world), "no-such-interface", kLong); },
                ThrowsMessage<CommError>(AllOf(HasSubstr("rank 0 on "), HasSubstr("no-such-interface"))));
  });
}

TEST(RendezvousByBroadcast, SaysWhereRankZeroWasLookedFor) {
  const testing::SilentPort silent;
  const auto broadcast = [&](const std::string&) {
    return "\n" + std::to_string(silent.port()) + "\na secret of the tests\nnode1\n127.0.0.1 \nanother host";
  };
  EXPECT_THAT([&] { rendezvous_by_broadcast({.rank = 3, .size = 4}, broadcast, "", Seconds(0.1)); },
              ThrowsMessage<CommError>(AllOf(HasSubstr("rank 3 on "), HasSubstr("cannot reach rank 0 on node1"),
                                             HasSubstr("127.0.0.1:" + std::to_string(silent.port())),
                                             HasSubstr("from 127.0.0.1"), HasSubstr("framework.interface"))));
}

TEST(FindOwnAddress, AllRanksAreInTheNetworkThroughWhichRankZeroWasReached) {
  testing::run_ranks("shm", 4, [](const CommunicatorPtr& world) {
    const RankInfo rank_info = on_host(world);
    const Rendezvous met = rendezvous_by_broadcast(rank_info, over(world), "lo", kLong);
    const OwnAddress own = find_own_address(*met.store, rank_info, met.host, "");
    EXPECT_EQ(own.interface, "lo") << own.describe();
    EXPECT_THAT(own.reason, HasSubstr("the route to "));
    world->barrier().wait();
  });
}

TEST(Meet, NeedsAPlaceOrMpi) {
  const LaunchEnvironment launched{.launcher = "srun", .rank_info = {.rank = 0, .size = 4, .local_size = 2}};
  EXPECT_THAT([&] { meet(launched, "", kLong); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("srun has started"), HasSubstr("--init_method"))));
}

// A world over `address` alone, with and without a secret.
void connect_at(const std::string& address, const std::string& backend) {
  for (const bool secret : {false, true}) {
    const std::string url = "tcp://" + address + ":" + std::to_string(testing::free_port());
    testing::run_ranks("shm", 4, [&](const CommunicatorPtr& flat) {
      if (secret) ::setenv("PHALANX_JOB_SECRET", "a secret of the tests", 1);
      const auto launched = at(on_host(flat), url);
      const auto worlds =
          connect_all({backend}, launched, {.timeout = kLong, .progress_thread = {}, .config = "seed: 1\n"});
      expect_sum(*worlds.front());
      flat->barrier().wait();
    });
  }
}

TEST(Connect, HybridBetweenHosts) { connect_at("127.0.0.1", "auto"); }

TEST(Connect, ByIpv6Alone) {
  if (!has_address("::1")) GTEST_SKIP() << "no IPv6 here";
  connect_at("[::1]", "gloo");
  connect_at("[::1]", "auto");
}

TEST(Connect, ThroughAFileThatAllHostsSee) {
  const std::string path = ::testing::TempDir() + "/meet_test.store";
  testing::run_ranks("shm", 4, [&](const CommunicatorPtr& flat) {
    expect_sum(*connect("gloo", at(on_host(flat), "file://" + path), kLong));
    flat->barrier().wait();
  });
}

TEST(Connect, RanksWithDifferentConfigsAreRefusedBeforeTheyConnect) {
  const std::string url = "tcp://127.0.0.1:" + std::to_string(testing::free_port());
  testing::run_ranks("shm", 2, [&](const CommunicatorPtr& flat) {
    const bool first = flat->rank() == 0;
    const auto launched = at({.rank = flat->rank(), .size = 2, .local_rank = flat->rank(), .local_size = 2}, url);
    const ConnectSettings settings{.timeout = kLong, .config = first ? "backend: shm\n" : "backend: gloo\n"};
    EXPECT_THAT([&] { connect_all({first ? "shm" : "gloo"}, launched, settings); },
                ThrowsMessage<StartMismatch>(HasSubstr("backend is gloo on rank 1 and shm on rank 0")));
  });
}

TEST(Connect, AnInterfaceThatIsNotThereIsNamed) {
  const LaunchEnvironment launched{
      .launcher = "a test", .rank_info = {.rank = 0, .size = 4, .local_size = 2}, .rendezvous = "tcp://127.0.0.1:1"};
  EXPECT_THAT(
      [&] { connect_all({"gloo"}, launched, {.interface = "no-such-interface"}); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("no network interface \"no-such-interface\""), HasSubstr("lo ("))));
}

}  // namespace
}  // namespace phalanx
