// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Set = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> detect(const Set& set, const std::optional<HydraProxy>& proxy = {}) {
  const auto variables = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  return detect_launch_environment(variables, [&] { return proxy; });
}

Set with(Set set, const Set& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}

Set without(Set set, const std::string& name) {
  set.erase(name);
  return set;
}

std::string problem(const Set& set) {
  try {
    detect(set);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_rank_info(const RankInfo& rank_info, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(rank_info.rank, rank);
  EXPECT_EQ(rank_info.size, size);
  EXPECT_EQ(rank_info.local_rank, local_rank);
  EXPECT_EQ(rank_info.local_size, local_size);
}

const Set kTorchrun{{"RANK", "5"},
                    {"WORLD_SIZE", "8"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "4"},
                    {"MASTER_ADDR", "ph0"},
                    {"MASTER_PORT", "29500"},
                    {"TORCHELASTIC_RUN_ID", "none"},
                    {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Set kMpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                  {"PMIX_NAMESPACE", "prterun-vm-1709@1"},
                  {"PMIX_SERVER_URI4", "prterun-vm-1709@0.0;tcp4://127.0.0.1:59553"},
                  {"TMPDIR", "/scratch"}};

const Set kSrun{{"SLURM_JOB_ID", "42"},        {"SLURM_STEP_ID", "3"},
                {"SLURM_PROCID", "6"},         {"SLURM_NTASKS", "7"},
                {"SLURM_LOCALID", "0"},        {"SLURM_NODEID", "3"},
                {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_NNODES", "4"},
                {"SLURM_STEP_NUM_TASKS", "7"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};

// The variables that Hydra, the mpiexec of MPICH and of Intel MPI, sets.
const Set kMpiexec{{"PMI_RANK", "1"},        {"PMI_SIZE", "2"},        {"PMI_FD", "9"},
                   {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"TMPDIR", "/scratch"}};
const HydraProxy kProxy{.program = "/opt/mpich/bin/hydra_pmi_proxy", .id = "17-4711"};

// The variables of another launcher with PMI.
const Set kPmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "9"}};

TEST(LaunchEnvironment, IsEmptyWithoutALauncher) { EXPECT_EQ(detect({{"HOME", "/root"}}), std::nullopt); }

TEST(LaunchEnvironment, Torchrun) {
  const auto found = detect(kTorchrun);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "torchrun");
  EXPECT_EQ(found->rendezvous, "env://");
  EXPECT_EQ(found->job, "torchrun-none-ph0-29500-2");
  expect_rank_info(found->rank_info, 5, 8, 1, 4);
}

TEST(LaunchEnvironment, FourVariablesOfTorchrunAreEnough) {
  const Set four{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "ph0"}, {"MASTER_PORT", "29500"}};
  expect_rank_info(detect(four)->rank_info, 1, 2, 0, 1);
  expect_rank_info(detect(with(four, {{"MASTER_ADDR", "127.0.0.1"}}))->rank_info, 1, 2, 1, 2);
}

TEST(LaunchEnvironment, OwnLauncher) {
  const auto found = detect({{"RANK", "1"},
                             {"WORLD_SIZE", "2"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"PHALANX_LAUNCHER", "local"},
                             {"PHALANX_RENDEZVOUS", "file:///tmp/phalanx-0-77/store"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "local");
  EXPECT_EQ(found->rendezvous, "file:///tmp/phalanx-0-77/store");
  EXPECT_THAT(found->job, AllOf(HasSubstr("phalanx-0-77"), ::testing::Not(HasSubstr("/"))));
  expect_rank_info(found->rank_info, 1, 2, 1, 2);
}

TEST(LaunchEnvironment, MpirunOnOneHost) {
  const auto found = detect(kMpirun);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "mpirun");
  EXPECT_EQ(found->job, "mpirun-prterun-vm-1709-1-59553");
  EXPECT_EQ(found->rendezvous, "file:///scratch/phalanx-" + std::to_string(::geteuid()) +
                                   "-mpirun-prterun-vm-1709-1-59553.store?rank=1&world_size=2");
  expect_rank_info(found->rank_info, 1, 2, 1, 2);
  EXPECT_EQ(detect(with(kMpirun, {{"PHALANX_LAUNCHER", "mpi"}}))->rendezvous, found->rendezvous);
}

TEST(LaunchEnvironment, OwnLauncherTellsRanksOfMpirunWhereToMeet) {
  const auto own =
      with(kMpirun, {{"PHALANX_LAUNCHER", "mpi"}, {"PHALANX_RENDEZVOUS", "file:///tmp/phalanx-0-77/store"}});
  EXPECT_EQ(detect(own)->launcher, "mpirun");
  EXPECT_EQ(detect(own)->rendezvous, "file:///tmp/phalanx-0-77/store?rank=1&world_size=2");
  EXPECT_EQ(detect(without(own, "PHALANX_LAUNCHER"))->rendezvous, detect(kMpirun)->rendezvous);
  EXPECT_EQ(detect(with(own, {{"OMPI_COMM_WORLD_SIZE", "4"}}))->rendezvous, "");
}

TEST(LaunchEnvironment, OnlyMpiConnectsSeveralHosts) {
  const auto found = detect(with(kMpirun, {{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_EQ(found->rendezvous, "");
  EXPECT_TRUE(found->mpi);
  EXPECT_EQ(found->job, "mpirun-prterun-vm-1709-1");  // the port differs between hosts
  EXPECT_FALSE(found->rank_info.one_host());
}

TEST(LaunchEnvironment, MpirunAndItsScriptMustAgree) {
  EXPECT_EQ(detect(with(kMpirun, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}))->launcher, "mpirun");
  EXPECT_THAT(problem(with(kMpirun, {{"RANK", "0"}})), HasSubstr("RANK=0 contradicts OMPI_COMM_WORLD_RANK=1"));
}

TEST(LaunchEnvironment, TheInnermostLauncherCounts) {
  EXPECT_EQ(detect(with(kMpirun, kTorchrun))->launcher, "torchrun");
  EXPECT_EQ(detect(with(kSrun, kTorchrun))->launcher, "torchrun");
  EXPECT_EQ(detect(with(kSrun, kMpirun))->launcher, "mpirun");
}

TEST(LaunchEnvironment, SrunOnSeveralNodes) {
  const auto found = detect(kSrun);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "srun");
  EXPECT_EQ(found->rendezvous, "") << "Slurm did not name the nodes";
  expect_rank_info(found->rank_info, 6, 7, 0, 1);
  expect_rank_info(detect(with(kSrun, {{"SLURM_NODEID", "2"}, {"SLURM_PROCID", "4"}}))->rank_info, 4, 7, 0, 2);
  EXPECT_THAT(problem(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})), HasSubstr("SLURM_STEP_TASKS_PER_NODE"));
}

std::string rendezvous_of(const Set& set) { return detect(set)->rendezvous; }

TEST(LaunchEnvironment, TasksOfSeveralNodesMeetAtTheFirstOne) {
  const auto listed = with(kSrun, {{"SLURM_STEP_NODELIST", "gpu[07-10]"}, {"SLURM_JOB_NODELIST", "login,gpu[07-10]"}});
  const std::string url = rendezvous_of(listed);
  EXPECT_THAT(url, ::testing::MatchesRegex("tcp://gpu07:[0-9]+.rank=6&world_size=7"));
  EXPECT_FALSE(detect(listed)->mpi);
  EXPECT_NE(rendezvous_of(with(listed, {{"SLURM_STEP_ID", "4"}})), url) << "another step has another port";
  EXPECT_NE(rendezvous_of(with(listed, {{"SLURM_JOB_ID", "43"}})), url);
  EXPECT_NE(rendezvous_of(with(listed, {{"SLURM_RESTART_COUNT", "1"}})), url);
  EXPECT_THAT(rendezvous_of(without(listed, "SLURM_STEP_NODELIST")), HasSubstr("tcp://login:"));
  EXPECT_THAT(problem(with(kSrun, {{"SLURM_STEP_NODELIST", "gpu[07"}})), HasSubstr("node list \"gpu[07\""));
}

TEST(LaunchEnvironment, TheUserMaySayWhereTasksMeet) {
  const auto listed = with(kSrun, {{"SLURM_STEP_NODELIST", "gpu[07-10]"}});
  EXPECT_EQ(rendezvous_of(with(listed, {{"SLURM_STEP_RESV_PORTS", "12001-12003"}})),
            "tcp://gpu07:12001?rank=6&world_size=7");
  EXPECT_EQ(rendezvous_of(with(listed, {{"MASTER_ADDR", "fd00::7"}, {"MASTER_PORT", "29500"}})),
            "tcp://[fd00::7]:29500?rank=6&world_size=7");
}

TEST(LaunchEnvironment, TasksThatPmixStartedMeetThroughMpi) {
  const auto found = detect(with(kSrun, {{"SLURM_STEP_NODELIST", "gpu[07-10]"}, {"PMIX_RANK", "6"}}));
  EXPECT_EQ(found->rendezvous, "");
  EXPECT_TRUE(found->mpi);
}

TEST(LaunchEnvironment, SrunOnOneNode) {
  const auto set = with(kSrun, {{"SLURM_STEP_NUM_NODES", "1"},
                                {"SLURM_LOCALID", "6"},
                                {"SLURM_NODEID", "0"},
                                {"SLURM_RESTART_COUNT", "1"},
                                {"SLURM_STEP_LAUNCHER_PORT", "40001"}});
  const auto found = detect(set);
  expect_rank_info(found->rank_info, 6, 7, 6, 7);
  EXPECT_EQ(found->job, "slurm-42.3.1-40001");
  EXPECT_THAT(found->rendezvous, HasSubstr("-slurm-42.3.1-40001.store?rank=6&world_size=7"));
}

TEST(LaunchEnvironment, ABatchScriptIsNotARank) {
  const auto batch = with(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}});
  EXPECT_EQ(detect(without(batch, "SLURM_STEP_ID")), std::nullopt);
  EXPECT_EQ(detect(without(batch, "SLURM_PROCID")), std::nullopt);
  EXPECT_EQ(detect(with(batch, {{"SLURM_STEP_ID", "4294967291"}})), std::nullopt);
  EXPECT_EQ(detect(with(batch, {{"SLURM_STEP_ID", "batch"}})), std::nullopt);
}

TEST(LaunchEnvironment, AStepOfOneTaskIsNotAJobOfRanks) {
  const Set one{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_EQ(detect(with(kSrun, one)), std::nullopt);
}

TEST(LaunchEnvironment, MpiexecOnOneHost) {
  const auto found = detect(kMpiexec, kProxy);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "mpiexec");
  EXPECT_TRUE(found->mpi);
  EXPECT_EQ(found->job, "mpiexec-17-4711");
  EXPECT_EQ(found->rendezvous,
            "file:///scratch/phalanx-" + std::to_string(::geteuid()) + "-mpiexec-17-4711.store?rank=1&world_size=2");
  expect_rank_info(found->rank_info, 1, 2, 1, 2);
  EXPECT_EQ(detect(kMpiexec)->rendezvous, "") << "only MPI tells this job from others";
}

TEST(LaunchEnvironment, OwnLauncherTellsRanksOfMpiexecWhereToMeet) {
  const auto own =
      with(kMpiexec, {{"PHALANX_LAUNCHER", "mpi"}, {"PHALANX_RENDEZVOUS", "file:///tmp/phalanx-0-77/store"}});
  EXPECT_EQ(detect(own)->rendezvous, "file:///tmp/phalanx-0-77/store?rank=1&world_size=2");
  EXPECT_EQ(
      detect(with(own, {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}))
          ->launcher,
      "mpiexec");
}

TEST(LaunchEnvironment, RanksOfMpiexecOnSeveralHostsMeetThroughMpi) {
  const auto found = detect(with(kMpiexec, {{"PMI_SIZE", "4"}}), kProxy);
  EXPECT_EQ(found->rendezvous, "");
  EXPECT_TRUE(found->mpi);
  EXPECT_FALSE(found->rank_info.one_host());
  EXPECT_THAT(problem(with(kMpiexec, {{"MPI_LOCALRANKID", "2"}})), HasSubstr("MPI_LOCALNRANKS=2"));
}

TEST(LaunchEnvironment, RanksOfOtherPmiNeedAPlaceToMeet) {
  EXPECT_THAT(problem(kPmi), AllOf(HasSubstr("PMI_RANK=1, PMI_SIZE=2"), HasSubstr("MASTER_ADDR"),
                                   HasSubstr("Open MPI's mpirun"), HasSubstr("launch.hosts")));
  EXPECT_THAT(problem(with(kPmi, {{"PMI_RANK", "0"}})), HasSubstr("PMI_RANK=0"));
  EXPECT_THAT(problem(with(kMpiexec, {{"MASTER_ADDR", "ph0"}})), HasSubstr("MASTER_PORT is not"));
  EXPECT_THAT(problem(without(kMpiexec, "PMI_SIZE")), HasSubstr("PMI_SIZE is not"));
}

TEST(LaunchEnvironment, RanksOfMpiexecMeetAtAnAddressThatIsGiven) {
  const Set address{{"MASTER_ADDR", "ph0"}, {"MASTER_PORT", "29500"}};
  const auto found = detect(with(kMpiexec, address));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->launcher, "mpiexec");
  EXPECT_EQ(found->rendezvous, "tcp://ph0:29500?rank=1&world_size=2");
  EXPECT_TRUE(found->knows_local_rank);
  EXPECT_FALSE(found->mpi);
  expect_rank_info(found->rank_info, 1, 2, 1, 2);
  const auto of_other_pmi = detect(without(with(kMpiexec, address), "MPI_LOCALNRANKS"));
  EXPECT_FALSE(of_other_pmi->knows_local_rank);
  expect_rank_info(of_other_pmi->rank_info, 1, 2, 0, 1);
  EXPECT_EQ(detect(with(kMpiexec, {{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "1"}}))->rendezvous,
            "tcp://[fd00::1]:1?rank=1&world_size=2");
}

TEST(LaunchEnvironment, AProcessThatMpiexecStartedAloneIsNotARank) {
  EXPECT_EQ(detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), std::nullopt);
}

TEST(LaunchEnvironment, NoLauncherOfSeveralRanksIsIgnored) {
  for (const char* rank : {"PALS_RANKID", "ALPS_APP_PE", "PMIX_RANK", "PMI_ID"}) {
    EXPECT_THAT(problem({{rank, "0"}}), AllOf(HasSubstr(std::string(rank) + "=0"), HasSubstr("WORLD_SIZE"))) << rank;
  }
  EXPECT_THAT(problem({{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}}), HasSubstr("FLUX_JOB_SIZE=4"));
  EXPECT_THAT(problem({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "4"}}), HasSubstr("mpirun_rsh"));
  EXPECT_THAT(problem({{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "4"}}), HasSubstr("jsrun"));
}

TEST(LaunchEnvironment, KnownLaunchersSetVariablesOfPmiToo) {
  EXPECT_EQ(detect(with(kMpirun, {{"PMIX_RANK", "1"}}))->launcher, "mpirun");
  EXPECT_EQ(detect(with(kSrun, {{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}}))->launcher, "srun");
  const Set one{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}};
  EXPECT_EQ(detect(with(kSrun, one)), std::nullopt);
}

TEST(LaunchEnvironment, MpiexecInsideAStepOfSlurmIsTheInnermost) {
  EXPECT_EQ(detect(with(kSrun, kMpiexec))->launcher, "mpiexec");
  EXPECT_THAT(problem(with(kSrun, kPmi)), HasSubstr("PMI_RANK=1"));
  const Set address{{"MASTER_ADDR", "ph0"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(detect(with(with(kSrun, kMpiexec), address))->launcher, "mpiexec");
}

TEST(LaunchEnvironment, ALocalRankNeedsNoLocalSize) {
  const auto elsewhere = without(kTorchrun, "LOCAL_WORLD_SIZE");
  expect_rank_info(detect(elsewhere)->rank_info, 5, 8, 0, 1);
  EXPECT_FALSE(detect(elsewhere)->knows_local_rank);
  const auto here = with(elsewhere, {{"MASTER_ADDR", "127.0.0.1"}, {"LOCAL_RANK", "4"}});
  expect_rank_info(detect(here)->rank_info, 5, 8, 4, 8);
  EXPECT_THAT(problem(with(here, {{"LOCAL_RANK", "8"}})), HasSubstr("LOCAL_RANK=8 is not below WORLD_SIZE=8"));
}

TEST(LaunchEnvironment, ErrorsNameTheVariable) {
  EXPECT_THAT(problem(without(kTorchrun, "MASTER_ADDR")), HasSubstr("MASTER_ADDR is not"));
  EXPECT_THAT(problem(without(kTorchrun, "RANK")), HasSubstr("RANK is not"));
  EXPECT_THAT(problem(without(kTorchrun, "LOCAL_RANK")), HasSubstr("LOCAL_RANK is not"));
  EXPECT_THAT(problem(with(kTorchrun, {{"RANK", "8"}})), HasSubstr("RANK=8 is not below WORLD_SIZE=8"));
  EXPECT_THAT(problem(with(kTorchrun, {{"RANK", "x"}})), AllOf(HasSubstr("RANK"), HasSubstr("\"x\"")));
  EXPECT_THAT(problem(with(kTorchrun, {{"RANK", "-1"}})), HasSubstr("RANK"));
  EXPECT_THAT(problem({{"PHALANX_LAUNCHER", "mpi"}}), HasSubstr("OMPI_COMM_WORLD_RANK"));
  EXPECT_THAT(problem({{"PHALANX_LAUNCHER", "other"}}), HasSubstr("\"other\""));
  EXPECT_THAT(problem({{"PHALANX_LAUNCHER", "local"}}), HasSubstr("PHALANX_RENDEZVOUS"));
}

}  // namespace
}  // namespace phalanx
