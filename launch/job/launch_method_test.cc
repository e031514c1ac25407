// SPDX-License-Identifier: Apache-2.0
#include "launch/job/launch_method.h"

#include <gmock/gmock.h>

#include <string>

#include "framework/base/config/no_fields.h"
#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool plant(const std::string& name, const BackendTraits& traits) {
  return Backends::global().add<NoFields>(name, "for tests", traits,
                                          [](const NoFields&, const ConnectOptions&) { return CommunicatorPtr(); });
}

// Backends that nothing but this test knows: how their ranks are started follows from their traits.
const bool planted = plant("way_processes", {}) && plant("way_threads", {.threads = true}) &&
                     plant("way_mpi", {.mpi = true}) && plant("way_perhaps_mpi", {.mpi_without_store = true});

ExperimentConfig launched_with(const std::string& backend, int ranks = 2, const std::string& with = "auto") {
  ExperimentConfig config;
  config.backend = backend;
  config.launch.ranks = ranks;
  config.launch.with = with;
  return config;
}

TEST(ChooseLaunchMethod, FollowsFromTheTraitsOfTheBackend) {
  EXPECT_EQ(choose_launch_method(launched_with("auto")), LaunchMethod::kForks);
  EXPECT_EQ(choose_launch_method(launched_with("way_processes")), LaunchMethod::kForks);
  EXPECT_EQ(choose_launch_method(launched_with("way_perhaps_mpi")), LaunchMethod::kForks)
      << "our launcher provides a store";
  EXPECT_EQ(choose_launch_method(launched_with("way_threads")), LaunchMethod::kThreads);
  EXPECT_EQ(choose_launch_method(launched_with("way_mpi")), LaunchMethod::kMpirun);
}

TEST(ChooseLaunchMethod, ASingleRankIsAThread) {
  for (const auto* backend : {"auto", "way_processes", "way_threads", "way_mpi"}) {
    EXPECT_EQ(choose_launch_method(launched_with(backend, 1)), LaunchMethod::kThreads) << backend;
  }
}

TEST(ChooseLaunchMethod, TheConfigMayAskForMpirun) {
  EXPECT_EQ(choose_launch_method(launched_with("way_processes", 2, "mpi")), LaunchMethod::kMpirun);
  ExperimentConfig on_hosts = launched_with("way_processes");
  on_hosts.launch.hosts = {"a", "b"};
  EXPECT_EQ(choose_launch_method(on_hosts), LaunchMethod::kMpirun);
}

TEST(ChooseLaunchMethod, ABackendThatARuleSelectsCountsToo) {
  ExperimentConfig config = launched_with("way_processes");
  config.framework.selection = {{.op = "reduce", .backend = "way_mpi"}};
  EXPECT_EQ(choose_launch_method(config), LaunchMethod::kMpirun);
  config.launch.with = "local";
  EXPECT_THAT([&] { (void)choose_launch_method(config); },
              ThrowsMessage<ConfigError>(HasSubstr("backend way_mpi needs processes that mpirun started")));
}

TEST(ChooseLaunchMethod, OptionsOfMpirunNeedMpirun) {
  ExperimentConfig config = launched_with("way_mpi");
  config.launch.mpirun_options = {"--tag-output"};
  EXPECT_EQ(choose_launch_method(config), LaunchMethod::kMpirun);
  config.backend = "way_processes";
  EXPECT_THAT([&] { (void)choose_launch_method(config); },
              ThrowsMessage<ConfigError>(HasSubstr("launch.mpirun_options: mpirun does not start these ranks")));
}

TEST(RefuseTooManyRanks, CountsTheCoresOfThisHost) {
  LaunchConfig launch;
  launch.ranks = 32 * usable_cores();
  EXPECT_NO_THROW(refuse_too_many_ranks(launch));
  ++launch.ranks;
  EXPECT_THAT([&] { refuse_too_many_ranks(launch); },
              ThrowsMessage<ConfigError>(HasSubstr("or set launch.oversubscribe: true")));
  launch.oversubscribe = true;
  EXPECT_NO_THROW(refuse_too_many_ranks(launch));
  launch.oversubscribe = false;
  launch.hosts = {"a"};
  EXPECT_NO_THROW(refuse_too_many_ranks(launch)) << "the cores of other hosts are unknown";
}

}  // namespace
}  // namespace phalanx
