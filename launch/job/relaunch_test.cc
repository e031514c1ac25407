// SPDX-License-Identifier: Apache-2.0
#include "launch/job/relaunch.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/base/environment.h"
#include "launch/exit_status.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ExperimentConfig config_of(std::int64_t restarts, std::vector<std::string> hosts = {}, std::int64_t ranks = 4) {
  ExperimentConfig config;
  config.launch.restarts = restarts;
  config.launch.hosts = std::move(hosts);
  config.launch.ranks = ranks;
  return config;
}

Verdict killed(const std::string& host = "here") {
  return {.status = kRankDied,
          .cause = Failure{.rank = 1, .host = host, .message = "It was killed by signal 9 (SIGKILL)."},
          .unexplained = true};
}

Verdict failed_with(const std::string& message) {
  return {.status = kFailed, .cause = Failure{.rank = 1, .host = "here", .message = message}};
}

bool always(const std::string&) { return true; }

TEST(RelaunchPolicy, StartsAgainAsOftenAsTheConfigSays) {
  RelaunchPolicy policy(config_of(2), always);
  EXPECT_TRUE(policy.next(killed(), 10));
  EXPECT_TRUE(policy.next(killed(), 20));
  EXPECT_FALSE(policy.next(killed(), 30));
  EXPECT_THAT(policy.why_not(), HasSubstr("started again 2 times"));
}

TEST(RelaunchPolicy, LeavesJobsAloneThatDidNotFail) {
  for (const int status : {kDone, kUsage, kExpectationFailed, kTimeUp, kInterrupted}) {
    RelaunchPolicy policy(config_of(2), always);
    EXPECT_FALSE(policy.next({.status = status}, 10)) << status;
    EXPECT_EQ(policy.why_not(), "");
  }
  RelaunchPolicy off(config_of(0), always);
  EXPECT_FALSE(off.next(killed(), 10));
  EXPECT_EQ(off.why_not(), "");
}

TEST(RelaunchPolicy, WaitsLongerWithoutProgress) {
  auto config = config_of(20);
  config.launch.restart_delay = 3;
  RelaunchPolicy policy(config, always);
  std::vector<double> delays;
  for (const int step : {-1, -1, -1, 10, 10, 20}) delays.push_back(policy.next(killed(), step)->delay.count());
  EXPECT_THAT(delays, ElementsAre(3, 6, 12, 3, 6, 3));
  for (int i = 0; i < 8; ++i) policy.next(killed(), 20);
  EXPECT_EQ(policy.next(killed(), 20)->delay.count(), 60);
}

TEST(RelaunchPolicy, DoesNotLeaveOutHostsThatHaveHeardNothingFromTheLauncher) {
  RelaunchPolicy policy(config_of(9, {"a", "b"}), always);
  for (int i = 0; i < 3; ++i) {
    auto verdict = killed("a");
    verdict.cause->spares_host = true;
    const auto again = policy.next(verdict, 10 * i);
    ASSERT_TRUE(again);
    EXPECT_THAT(again->hosts, ElementsAre("a", "b"));
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(policy.next(killed("a"), 100 + i)->hosts.size(), i == 0 ? 2U : 1U);
}

TEST(RelaunchPolicy, DoesNotRepeatAFailureForever) {
  RelaunchPolicy policy(config_of(9), always);
  EXPECT_TRUE(policy.next(failed_with("files are missing"), -1));
  EXPECT_FALSE(policy.next(failed_with("files are missing"), -1));
  EXPECT_THAT(policy.why_not(), HasSubstr("failed twice in the same way"));
}

TEST(RelaunchPolicy, RepeatsWhatMayDifferNextTime) {
  RelaunchPolicy policy(config_of(9), always);
  EXPECT_TRUE(policy.next(failed_with("a"), -1));
  EXPECT_TRUE(policy.next(failed_with("b"), -1)) << "another failure";
  EXPECT_TRUE(policy.next(failed_with("b"), 10)) << "a checkpoint in between";
  EXPECT_TRUE(policy.next(killed(), 10));
  EXPECT_TRUE(policy.next(killed(), 10)) << "a signal from outside";
}

TEST(RelaunchPolicy, LeavesOutAHostThatFailsRepeatedly) {
  RelaunchPolicy policy(config_of(9, {"node1.cluster:2", "node2:2"}), always);
  EXPECT_THAT(policy.next(killed("node1"), 10)->hosts, ElementsAre("node1.cluster:2", "node2:2"));
  EXPECT_THAT(policy.next(killed("node2"), 20)->hosts, ElementsAre("node1.cluster:2", "node2:2"));
  const auto again = policy.next(killed("node1"), 30);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->hosts, ElementsAre("node2:2"));
  EXPECT_EQ(again->ranks, 2);
  EXPECT_THAT(again->notice, HasSubstr("without node1.cluster, on ranks: 2"));
}

TEST(RelaunchPolicy, StartsNoMoreRanksThanTheHostsThatAreLeftHaveSlots) {
  RelaunchPolicy policy(config_of(9, {"small:1", "large:3"}), always);
  EXPECT_TRUE(policy.next(killed("large"), 10));
  const auto again = policy.next(killed("large"), 20);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->hosts, ElementsAre("small:1"));
  EXPECT_EQ(again->ranks, 1);
}

TEST(RelaunchPolicy, LeavesOutAHostThatDoesNotAnswer) {
  std::vector<std::string> asked;
  RelaunchPolicy policy(config_of(9, {"node1", "node2", "node3"}, 6), [&](const std::string& host) {
    asked.push_back(host);
    return host != "node3";
  });
  EXPECT_TRUE(policy.next(killed("node2"), 10));
  EXPECT_THAT(asked, IsEmpty()) << "a rank has told why";
  const Verdict no_rank{.status = kFailed, .cause = Failure{.rank = -1, .message = "mpirun: lost a daemon"}};
  const auto again = policy.next(no_rank, 20);
  ASSERT_TRUE(again);
  EXPECT_THAT(asked, ElementsAre("node1", "node2", "node3"));
  EXPECT_THAT(again->hosts, ElementsAre("node1", "node2"));
  EXPECT_EQ(again->ranks, 4);
}

TEST(RelaunchPolicy, KeepsWholeReplicas) {
  auto config = config_of(9, {"node1", "node2", "node3"}, 6);
  config.mesh.tensor = 3;
  config.launch.exclude_after = 1;
  RelaunchPolicy policy(config, always);
  EXPECT_EQ(policy.next(killed("node2"), 10)->ranks, 3) << "four ranks are left, but a replica takes three";
  EXPECT_FALSE(policy.next(killed("node1"), 20));
  EXPECT_THAT(policy.why_not(), HasSubstr("the mesh takes 3 ranks"));
}

TEST(RelaunchPolicy, DoesNotStartAgainWithFewerRanksThanTheConfigWants) {
  auto config = config_of(9, {"node1", "node2", "node3"}, 6);
  config.faults.min_ranks = 3;
  config.launch.exclude_after = 1;
  RelaunchPolicy policy(config, always);
  EXPECT_EQ(policy.next(killed("node2"), 10)->ranks, 4);
  EXPECT_FALSE(policy.too_few_ranks());
  EXPECT_FALSE(policy.next(killed("node1"), 20));
  EXPECT_TRUE(policy.too_few_ranks());
  EXPECT_THAT(policy.why_not(),
              HasSubstr("Without node1, 2 ranks are left, on node3, fewer than faults.min_ranks: 3, so"));
}

TEST(RelaunchPolicy, DoesNotBlameTheHostOfAConsequence) {
  auto config = config_of(9, {"node1", "node2"});
  config.launch.exclude_after = 1;
  RelaunchPolicy policy(config, always);
  auto lost = failed_with("rank 3 ended");
  lost.cause->secondary = true;
  lost.cause->host = "node1";
  EXPECT_THAT(policy.next(lost, 10)->hosts, ElementsAre("node1", "node2"));
}

const WrongResult kRepaired{.rank = 1, .host = "node1", .message = "replicas differ; repaired"};
const WrongResult kWrongAgain{.rank = 1, .host = "node1", .message = "replicas differ, for the second time"};

Verdict ended_by(const WrongResult& wrong) {
  return {.status = kFailed, .cause = Failure{.rank = wrong.rank, .host = wrong.host, .message = wrong.message}};
}

TEST(RelaunchPolicy, LeavesOutAHostThatComputesWronglyTwiceAlthoughTheFirstResultWasRepaired) {
  RelaunchPolicy policy(config_of(9, {"node1.cluster:2", "node2:2"}), always);
  const auto again = policy.next(ended_by(kWrongAgain), 10, {kRepaired, kWrongAgain});
  ASSERT_TRUE(again);
  EXPECT_THAT(again->hosts, ElementsAre("node2:2"));
  EXPECT_THAT(again->notice, HasSubstr("without node1.cluster (it has computed wrongly 2 times), on ranks: 2"));
  EXPECT_THAT(again->wrong_ranks, IsEmpty()) << "ranks have other numbers";
}

TEST(RelaunchPolicy, CountsAWrongResultOnceIfItEndsTheRun) {
  RelaunchPolicy policy(config_of(9, {"node1", "node2"}), always);
  const auto first = policy.next(ended_by(kRepaired), 10, {kRepaired});
  EXPECT_THAT(first->hosts, ElementsAre("node1", "node2"));
  EXPECT_THAT(first->wrong_ranks, ElementsAre(1));
  EXPECT_THAT(policy.next(ended_by(kWrongAgain), 10, {kWrongAgain})->hosts, ElementsAre("node2"));
}

TEST(RelaunchPolicy, RemembersARepairWhenSomethingElseEndsTheRun) {
  RelaunchPolicy policy(config_of(9, {"node1", "node2"}), always);
  const auto first = policy.next(killed("node2"), 10, {kRepaired});
  EXPECT_THAT(first->hosts, ElementsAre("node1", "node2"));
  EXPECT_THAT(first->wrong_ranks, ElementsAre(1));
  EXPECT_THAT(policy.next(killed("node1"), 20)->hosts, ElementsAre("node2"));
}

TEST(RelaunchPolicy, EndsIfTheOnlyHostComputesWronglyTwice) {
  RelaunchPolicy policy(config_of(9), always);
  EXPECT_TRUE(policy.next(ended_by(kRepaired), 10, {kRepaired}));
  EXPECT_FALSE(policy.next(ended_by(kWrongAgain), 20, {kWrongAgain}));
  EXPECT_THAT(policy.why_not(), HasSubstr("node1 has computed wrongly 2 times (launch.exclude_after), and there is no "
                                          "other host"));
}

TEST(WaitBeforeRelaunch, EndsWithASignal) {
  EXPECT_TRUE(wait_before_relaunch(Seconds(0.01)));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(wait_before_relaunch(Seconds(60)) ? 1 : 7);
  ASSERT_TRUE(testing::becomes_true([&] {
    ::kill(child, SIGCONT);  // does nothing to a process that runs
    std::string status = testing::text_of("/proc/" + std::to_string(child) + "/status");
    return status.find("SigBlk:\t0000000000000000") == std::string::npos;
  }));
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(HostAnswers, AsksTheAgentOfOpenMpi) {
  EXPECT_TRUE(host_answers("localhost", LaunchMethod::kMpirun));
  ::setenv("PRTE_MCA_plm_ssh_agent", "/bin/true", 1);
  EXPECT_TRUE(host_answers("node1", LaunchMethod::kMpirun));
  ::setenv("PRTE_MCA_plm_ssh_agent", "/bin/false", 1);
  EXPECT_FALSE(host_answers("node1", LaunchMethod::kMpirun));
  ::setenv("PRTE_MCA_plm_ssh_agent", "/no/such/agent", 1);
  EXPECT_FALSE(host_answers("node1", LaunchMethod::kMpirun));
  ::unsetenv("PRTE_MCA_plm_ssh_agent");
}

TEST(HostAnswers, AsksSshForAgents) {
  const testing::Scratch scratch;
  const std::string path = environment("PATH").value_or("");
  ::setenv("PATH", (scratch.folder() + ":" + path).c_str(), 1);
  ::setenv("PRTE_MCA_plm_ssh_agent", "/bin/false", 1);
  const auto answers = [&](const std::string& status) {
    const std::string ssh = scratch.path("ssh");
    std::ofstream(ssh) << "#!/bin/sh\nexit " << status << "\n";
    std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
    return host_answers("node1", LaunchMethod::kAgents);
  };
  EXPECT_TRUE(answers("0"));
  EXPECT_FALSE(answers("255"));
  ::setenv("PATH", path.c_str(), 1);
  ::unsetenv("PRTE_MCA_plm_ssh_agent");
}

TEST(HostAnswers, AsksSlurmForAgentsThatSrunStarts) {
  const testing::Scratch scratch;
  const std::string path = environment("PATH").value_or(""), srun = scratch.path("srun");
  std::ofstream(srun) << "#!/bin/sh\n[ \"$1\" = --nodelist=node1 ]\n";
  std::filesystem::permissions(srun, std::filesystem::perms::owner_all);
  ::setenv("PATH", (scratch.folder() + ":" + path).c_str(), 1);
  EXPECT_TRUE(host_answers("node1", LaunchMethod::kAgents, Reach::kSrun));
  EXPECT_FALSE(host_answers("node2", LaunchMethod::kAgents, Reach::kSrun));
  ::setenv("PATH", path.c_str(), 1);
}

TEST(StartedBefore, ReadsTheCountersOfLaunchers) {
  EXPECT_FALSE(started_before());
  for (const char* variable : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}) {
    ::setenv(variable, "0", 1);
    EXPECT_FALSE(started_before());
    ::setenv(variable, "2", 1);
    EXPECT_TRUE(started_before());
    ::unsetenv(variable);
  }
}

}  // namespace
}  // namespace phalanx
