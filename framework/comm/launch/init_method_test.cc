// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/init_method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using Set = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> init(const InitMethod& method, const Set& set = {}) {
  return detect_launch_environment(method, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const InitMethod& method, const Set& set = {}) {
  try {
    (void)init(method, set);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const Set kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                  {"PMIX_NAMESPACE", "job"}};

TEST(InitMethod, WithoutAnyTheLauncherDecides) {
  EXPECT_EQ(init({}), std::nullopt);
  EXPECT_EQ(init({}, kMpirun)->launcher, "mpirun");
}

TEST(InitMethod, GivesRankAndPlace) {
  const auto found = init({.url = "tcp://ph0:29500", .rank = 1, .world_size = 4});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rendezvous, "tcp://ph0:29500?rank=1&world_size=4");
  EXPECT_EQ(found->rank_info.rank, 1);
  EXPECT_EQ(found->rank_info.size, 4);
  EXPECT_FALSE(found->knows_local_rank) << "the ranks may be on any hosts";
  EXPECT_FALSE(found->mpi);
  EXPECT_EQ(init({.url = "file:///tmp/store", .rank = 0, .world_size = 2})->rendezvous,
            "file:///tmp/store?rank=0&world_size=2");
}

TEST(InitMethod, RanksMayBeInTheUrl) {
  EXPECT_EQ(init({.url = "tcp://[::1]:29500?rank=1&world_size=4"})->rendezvous,
            "tcp://[::1]:29500?rank=1&world_size=4");
}

TEST(InitMethod, ALoopbackAddressMeansThatAllRanksAreHere) {
  for (const std::string host : {"127.0.0.1", "localhost", "[::1]"}) {
    const auto found = init({.url = "tcp://" + host + ":1", .rank = 1, .world_size = 4});
    EXPECT_TRUE(found->rank_info.one_host()) << host;
    EXPECT_EQ(found->rank_info.local_rank, 1) << host;
  }
}

TEST(InitMethod, ByEnvironmentTakesTheAddressFromVariables) {
  const Set address{{"MASTER_ADDR", "ph0"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(init({.url = "env://", .rank = 1, .world_size = 4}, address)->rendezvous, "env://?rank=1&world_size=4");
  EXPECT_EQ(init({.rank = 1, .world_size = 4}, address)->rank_info.size, 4);
  EXPECT_THAT(refusal({.url = "env://", .rank = 1, .world_size = 4}), HasSubstr("MASTER_ADDR is not"));
}

TEST(InitMethod, ALauncherProvidesTheRankIfNoneIsGiven) {
  const auto found = init({.url = "tcp://ph0:29500"}, kMpirun);
  EXPECT_EQ(found->launcher, "mpirun");
  EXPECT_EQ(found->rendezvous, "tcp://ph0:29500?rank=1&world_size=4");
  EXPECT_EQ(found->rank_info.local_size, 2);
  EXPECT_FALSE(found->mpi) << "the ranks meet where the user wants, not through MPI";
  EXPECT_EQ(init({.url = "tcp://ph0:1"}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}})->rendezvous,
            "tcp://ph0:1?rank=1&world_size=2");
}

TEST(InitMethod, AScriptInsideALauncherGivesOtherRanks) {
  const auto found = init({.url = "tcp://ph0:29500", .rank = 5, .world_size = 8}, kMpirun);
  EXPECT_EQ(found->rank_info.rank, 5);
  EXPECT_EQ(found->rank_info.size, 8);
  EXPECT_FALSE(found->knows_local_rank);
}

TEST(InitMethod, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(refusal({.url = "tcp://ph0:29500"}), HasSubstr("give rank and world_size"));
  EXPECT_THAT(refusal({.url = "tcp://ph0:29500", .rank = 1}), HasSubstr("rank is given, but world_size is not"));
  EXPECT_THAT(refusal({.url = "tcp://ph0:1", .rank = 4, .world_size = 4}), HasSubstr("rank 4 is not one of 4"));
  EXPECT_THAT(refusal({.url = "tcp://ph0:1", .rank = -1, .world_size = 4}), HasSubstr("rank -1 is not one of 4"));
  EXPECT_THAT(refusal({.url = "tcp://ph0"}), HasSubstr("expected tcp://host:port"));
  EXPECT_THAT(refusal({.url = "tcp://ph0:0"}), HasSubstr("port 0 is not between 1 and 65535"));
  EXPECT_THAT(refusal({.url = "tcp://ph0:x"}), HasSubstr("expected a whole number, got \"x\""));
  EXPECT_THAT(refusal({.url = "tcp://ph0:1?size=2"}), HasSubstr("\"size\" is neither rank nor world_size"));
  for (const char* url : {"ph0:29500", "file://relative", "udp://ph0:1"}) {
    EXPECT_THAT(refusal({.url = url}), HasSubstr(std::string("init_method ") + url + ": expected env://"));
  }
}

}  // namespace
}  // namespace phalanx
