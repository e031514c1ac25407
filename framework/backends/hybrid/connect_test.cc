// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/connect.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/backends/hybrid/communicator.h"
#include "framework/backends/hybrid/host_communicator.h"
#include "framework/backends/testing/run_hybrid.h"
#include "framework/base/error.h"
#include "framework/collectives/testing/equivalence.h"
#include "framework/comm/launch/host_lease.h"

namespace phalanx::hybrid {
namespace {

using testing::expect_same_collectives;
using testing::run_hybrid;

template <class T>
bool is(const CommunicatorPtr& group) {
  return dynamic_cast<const T*>(group.get()) != nullptr;
}

class Hosts : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Places, Hosts, ::testing::Values("a", "ab", "aa", "aabb", "abab", "aaabb", "abcb", "aabbcc"),
                         [](const auto& info) { return info.param; });

TEST_P(Hosts, GiveTheSameResultsAsAFlatWorld) {
  run_hybrid(GetParam(), [](const auto& world, const auto& flat) { expect_same_collectives(*flat, *world); });
}

TEST(Hybrid, IsPlainWhereThereIsNothingToCombine) {
  run_hybrid("aaa", [](const auto& world, const auto&) { EXPECT_FALSE(is<HierarchicalCommunicator>(world)); });
  run_hybrid("abc", [](const auto& world, const auto&) { EXPECT_FALSE(is<HierarchicalCommunicator>(world)); });
  run_hybrid("aab", [](const auto& world, const auto&) { EXPECT_TRUE(is<HybridCommunicator>(world)); });
}

// Returns the levels of rank 2h + n on host h: racks of two hosts, and each rank of a host on a NUMA node of its own.
std::vector<Key> rack_host_numa(int rank) {
  return {{"rack", std::to_string(rank / 4)}, {"host", "is known"}, {"numa", std::to_string(rank % 2)}};
}

TEST(Hybrid, LevelsAboveAndBelowHostsGiveTheSameResults) {
  run_hybrid(
      "aabbccdd",
      [](const auto& world, const auto& flat) {
        EXPECT_TRUE(is<HybridCommunicator>(world));
        expect_same_collectives(*flat, *world);
      },
      rack_host_numa);
}

TEST(Hybrid, RanksOfAHostAreDividedByNumaNode) {
  run_hybrid(
      "aaaabbbb",
      [](const auto& world, const auto& flat) {
        EXPECT_TRUE(is<HybridCommunicator>(world));
        expect_same_collectives(*flat, *world);
        const at::Tensor memory = world->allocate({1000}, at::kLong);
        memory.fill_(world->rank());
        world->all_reduce(memory, Reduction::kSum).wait();
        EXPECT_TRUE(at::equal(memory, at::full({1000}, 28, at::kLong)));
      },
      [](int rank) { return std::vector<Key>{{"host", ""}, {"numa", std::to_string(rank / 2 % 2)}}; });
}

TEST(Hybrid, LevelsRemainWhereHostsAddNothing) {
  run_hybrid(
      "abcdefgh",
      [](const auto& world, const auto& flat) {
        EXPECT_TRUE(is<HierarchicalCommunicator>(world)) << "by rack";
        EXPECT_FALSE(is<HybridCommunicator>(world));
        expect_same_collectives(*flat, *world);
      },
      [](int rank) { return std::vector<Key>{{"rack", std::to_string(rank / 4)}, {"host", ""}}; });
  run_hybrid(
      "aaaa",
      [](const auto& world, const auto& flat) {
        EXPECT_TRUE(is<HierarchicalCommunicator>(world)) << "by NUMA node";
        expect_same_collectives(*flat, *world);
      },
      [](int rank) { return std::vector<Key>{{"host", ""}, {"numa", std::to_string(rank / 2)}}; });
}

TEST(Hybrid, GroupsThatAreSplitKeepTheLevels) {
  run_hybrid(
      "aabbccdd",
      [](const auto& world, const auto& flat) {
        const int part = world->rank() < 6 ? 0 : 1;
        expect_same_collectives(*flat->split(part, flat->rank()), *world->split(part, world->rank()));
        const auto column = world->split(world->rank() % 2, world->rank());
        EXPECT_TRUE(is<HierarchicalCommunicator>(column)) << "one rank of each host, by rack";
      },
      rack_host_numa);
}

// The sums are exact, so every order of addition gives the same bits. Messages are long enough to be cut into pieces.
TEST(Hybrid, LongMessagesGoByRacks) {
  run_hybrid(
      "aabbccdd",
      [](const auto& world, const auto&) {
        const at::Tensor tensor = at::full({600'000}, world->rank() + 1, at::kLong);
        world->all_reduce(tensor, Reduction::kSum).wait();
        EXPECT_TRUE(at::equal(tensor, at::full({600'000}, 36, at::kLong)));
      },
      rack_host_numa);
}

// The operation exchanges pieces between three hosts and must keep the order of their ranks.
TEST(Hybrid, KeepsTheOrderOfAReductionThatDoesNotCommute) {
  const auto append =
      Reduction::custom<std::int64_t>("append", [](std::span<std::int64_t> result, std::span<const std::int64_t> next) {
        for (std::size_t i = 0; i < result.size(); ++i) {
          for (auto rest = next[i]; rest > 0; rest /= 10) result[i] *= 10;
          result[i] += next[i];
        }
      });
  for (const std::string hosts : {"aabbcc", "abcabc", "aaabbc"}) {
    run_hybrid(hosts, [&](const auto& world, const auto&) {
      const at::Tensor tensor = at::full({300'000}, world->rank() + 1, at::kLong);
      world->all_reduce(tensor, append).wait();
      EXPECT_TRUE(at::equal(tensor, at::full({300'000}, 123456, at::kLong))) << hosts;
    });
  }
}

// Operations that use the world of all ranks.
TEST(Hybrid, PassesOnOperationsThatDoNotDependOnHosts) {
  run_hybrid("aabb", [](const CommunicatorPtr& world, const auto&) {
    const int rank = world->rank();
    const at::Tensor got = at::full({5}, -1, at::kLong);
    Work sent = world->send(at::full({5}, rank, at::kLong), (rank + 1) % 4, 7);
    world->recv(got, (rank + 3) % 4, 7).wait();
    sent.wait();
    EXPECT_TRUE(at::equal(got, at::full({5}, (rank + 3) % 4, at::kLong)));
    world->barrier().wait();
  });
}

TEST(Hybrid, SplitsIntoHybridsAcrossHosts) {
  run_hybrid("aabbaa", [](const auto& world, const auto& flat) {
    const int color = world->rank() == 3 ? -1 : 0;
    const auto child = world->split(color, -world->rank());
    const auto flat_child = flat->split(color, -flat->rank());
    ASSERT_EQ(child == nullptr, world->rank() == 3);
    if (!child) return;
    EXPECT_TRUE(is<HybridCommunicator>(child));
    expect_same_collectives(*flat_child, *child);
  });
}

TEST(Hybrid, SplitsIntoTheFasterBackendInsideAHost) {
  run_hybrid("aaabbb", [](const auto& world, const auto& flat) {
    const auto child = world->split(world->rank() / 3, world->rank());
    const auto flat_child = flat->split(flat->rank() / 3, flat->rank());
    EXPECT_TRUE(is<HostCommunicator>(child));
    expect_same_collectives(*flat_child, *child);
    const auto grandchild = child->split(child->rank() == 0 ? -1 : 0, -child->rank());
    ASSERT_EQ(grandchild == nullptr, child->rank() == 0);
    if (!grandchild) return;
    EXPECT_TRUE(is<HostCommunicator>(grandchild));
    EXPECT_EQ(grandchild->rank(), 2 - child->rank());
  });
}

TEST(Hybrid, SplitsIntoPlainGroupsWithOneRankOfEachHost) {
  run_hybrid("aabb", [](const auto& world, const auto&) {
    const auto child = world->split(world->rank() % 2, world->rank());
    EXPECT_EQ(child->size(), 2);
    EXPECT_FALSE(is<HybridCommunicator>(child) || is<HostCommunicator>(child));
  });
}

// The two backends have one queue each. Ranks that wait in another order than they launched could block each other.
TEST(Hybrid, KeepsOneOrderOverWorldAndGroups) {
  run_hybrid("aabb", [](const CommunicatorPtr& world, const auto&) {
    const auto host = world->split(world->rank() / 2, world->rank());
    const at::Tensor tensor = at::full({3000}, 1, at::kLong);
    Work first = host->all_reduce(tensor, Reduction::kSum);
    Work second = world->all_reduce(tensor, Reduction::kSum);
    Work third = host->all_reduce(tensor, Reduction::kSum);
    if (world->rank() % 2 == 0) {
      third.wait();
      first.wait();
    } else {
      second.wait();
    }
    third.wait();
    EXPECT_TRUE(at::equal(tensor, at::full({3000}, 2 * 4 * 2, at::kLong)));
    second.wait();
  });
}

std::string refusal(const Config& config, const ConnectOptions& options) {
  try {
    static_cast<void>(connect(config, options, "host"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

struct NoKeys {
  template <class V>
  void visit(V&) {}
};

// Stands in for a backend whose ranks MPI connects.
const bool mpi_stand_in = Backends::global().add<NoKeys>(
    "mpi_stand_in", "for tests", BackendTraits{.mpi = true},
    [](const NoKeys&, const ConnectOptions&) -> CommunicatorPtr { throw ConfigError("MPI was chosen"); });

TEST(Hybrid, UsesMpiOnlyIfMpiStartedTheseRanks) {
  ConnectOptions options{.rank_info = {}, .store = nullptr, .timeout = Seconds(1), .launched_by_mpi = true};
  const auto why = [&] { return refusal({.intra = "inproc", .inter = "auto"}, options); };
  EXPECT_EQ(why(), "MPI was chosen");
  ::setenv("PMIX_RANK", "0", 1);  // of a launcher further outside
  options.launched_by_mpi = false;
  EXPECT_NE(why().find("no backend connects the hosts"), std::string::npos);
  options.launched_by_mpi.reset();
  EXPECT_EQ(why(), "MPI was chosen") << "PMIX_RANK tells";
  ::unsetenv("PMIX_RANK");
}

// The other rank has connected by the backend between the hosts, and then does not go on.
TEST(Hybrid, ACheckEndsTheWaitForARankThatDoesNotSayWhereItIs) {
  const StorePtr store = make_hash_store(Seconds(60));
  const auto options = [&](int rank) {
    return ConnectOptions{.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                          .store = store,
                          .timeout = Seconds(60)};
  };
  auto other = std::async(std::launch::async, [&, own = options(1)]() mutable {
    own.store = make_prefix_store("hybrid/inter", store);
    return Backends::Choice("gloo").make(own);
  });
  std::atomic<int> patience{1000};
  auto impatient = options(0);
  impatient.check = [&] {
    if (--patience < 0) throw CommError(CommError::Kind::kTimeout, "enough");
    if (other.wait_for(std::chrono::seconds(0)) == std::future_status::ready) patience = 0;
  };
  try {
    (void)connect({.intra = "inproc", .inter = "gloo"}, impatient, "a");
    ADD_FAILURE();
  } catch (const CommError& error) {
    EXPECT_STREQ(error.what(), "enough");
  }
}

// The ranks have other numbers in a job that has lost ranks, and on the second host of any job.
TEST(Hybrid, TheGroupOfAHostKnowsItsRanksByTheirNumbersInTheJob) {
  const StorePtr store = make_hash_store(Seconds(60));
  const auto connect_rank = [&](int rank) {
    const ConnectOptions options{.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                 .store = store,
                                 .timeout = Seconds(60),
                                 .numbers = {3, 4}};
    return connect({.intra = "gloo", .inter = "gloo"}, options, "a");
  };
  auto other = std::async(std::launch::async, connect_rank, 1);
  const CommunicatorPtr host = connect_rank(0), peer = other.get();
  const auto lease = std::make_shared<HostLease>(5, boot_time() + std::chrono::hours(1));
  set_lease_of_process(lease);
  lease->declare_ended(4);
  try {
    host->barrier().wait();
    ADD_FAILURE();
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
  }
  set_lease_of_process(nullptr);
}

TEST(Hybrid, LevelsWithoutHostAreRefused) {
  const ConnectOptions options{
      .rank_info = {}, .store = make_hash_store(Seconds(1)), .timeout = Seconds(1), .levels = {{"numa", "0"}}};
  EXPECT_NE(
      refusal({.intra = "inproc", .inter = "inproc"}, options).find("framework.topology.levels has no level host"),
      std::string::npos);
}

TEST(Hybrid, SaysWhichBackendIsMissing) {
  ::unsetenv("PMIX_RANK");
  const ConnectOptions alone{{}, make_hash_store(Seconds(1)), Seconds(1)};
  EXPECT_NE(refusal({.intra = "ship", .inter = "inproc"}, alone).find("intra: \"ship\" is not one of "),
            std::string::npos);
  EXPECT_NE(refusal({.intra = "inproc", .inter = "hybrid"}, alone).find("inter cannot be hybrid itself"),
            std::string::npos);
  EXPECT_NE(
      refusal({.intra = "inproc", .inter = "auto"}, {{}, nullptr, Seconds(1)}).find("no backend connects the hosts"),
      std::string::npos);
}

}  // namespace
}  // namespace phalanx::hybrid
