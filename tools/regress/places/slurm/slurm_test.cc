// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "framework/base/error.h"
#include "tools/regress/places/slurm/output.h"
#include "tools/regress/places/slurm/script.h"

namespace phalanx::regress {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Job job(const std::string& name, int ranks = 1, int hosts = 1) {
  return {.name = name,
          .command = {"/bin/train", "--set=a=it's"},
          .ranks = ranks,
          .hosts = hosts,
          .folder = "/runs/" + name};
}

TEST(SbatchScript, HasATaskForEachJob) {
  const auto script = sbatch_script({.partition = "p", .owner = "/out", .jobs = {job("one"), job("two")}});
  EXPECT_THAT(script, HasSubstr("#SBATCH --array=0-1\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --partition=p\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --comment=\"/out\"\n"));
  EXPECT_THAT(script, HasSubstr("0)\n  folder='/runs/one'\n  set -- '/bin/train' '--set=a=it'\\''s'\n  ;;\n1)\n"));
}

TEST(SbatchScript, AsksForNodesTasksAndTime) {
  auto wide = job("wide", 4, 2);
  wide.time_limit = 61;
  const auto script = sbatch_script({.partition = "p", .owner = "/out", .jobs = {wide}});
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --time=3\n"));
  EXPECT_THAT(script, HasSubstr(" --set=launch.with=mpi\n")) << "mpirun spreads the ranks over the nodes";
}

TEST(SbatchScript, OfAJobThatSurvivesALostHostLetsItGoOn) {
  auto wide = job("wide", 4, 2);
  wide.survives_lost_host = true;
  const auto script = sbatch_script({.partition = "p", .owner = "/out", .jobs = {wide}});
  EXPECT_THAT(script, HasSubstr("#SBATCH --no-kill\n#SBATCH --requeue\n"));
  EXPECT_THAT(script, HasSubstr(" --set=launch.with=srun\n"));
  EXPECT_FALSE(need_the_same(wide, job("two", 4, 2)));
  auto narrow = job("narrow");
  narrow.survives_lost_host = true;
  EXPECT_THAT(sbatch_script({.partition = "p", .owner = "/out", .jobs = {narrow}}),
              AllOf(Not(HasSubstr("--no-kill")), Not(HasSubstr("launch.with"))));
  EXPECT_TRUE(need_the_same(narrow, job("one")));
}

TEST(SbatchScript, OfAJobWithoutALimitLeavesItToThePartition) {
  const auto script = sbatch_script({.partition = "p", .owner = "/out", .jobs = {job("one")}});
  EXPECT_THAT(script, Not(HasSubstr("--time")));
  EXPECT_THAT(script, Not(HasSubstr("launch.with")));
}

TEST(SbatchScript, OnlyEqualJobsShareAnArray) {
  EXPECT_TRUE(need_the_same(job("one"), job("two")));
  EXPECT_FALSE(need_the_same(job("one", 1), job("two", 2)));
  EXPECT_FALSE(need_the_same(job("one", 2, 1), job("two", 2, 2)));
  auto limited = job("two");
  limited.time_limit = 1;
  EXPECT_FALSE(need_the_same(job("one"), limited));
}

TEST(Partitions, CountWhatIsNotDown) {
  const auto partitions = parse_partitions("debug*|2/4/2/8|1/1/1/3\ngpu|0/64/0/64|0/1/0/1\n");
  EXPECT_EQ(partitions.at("debug").cpus, 6);
  EXPECT_EQ(partitions.at("debug").nodes, 2);
  EXPECT_EQ(partitions.at("gpu").cpus, 64);
  EXPECT_EQ(partitions.at("").name, "debug");
}

TEST(Partitions, WithoutADefaultHaveNone) { EXPECT_FALSE(parse_partitions("gpu|0/1/0/1|0/1/0/1\n").contains("")); }

TEST(Partitions, OfOtherTextAreAnError) {
  EXPECT_THROW(parse_partitions("debug\n"), DataError);
  EXPECT_THROW(parse_partitions("debug|0/1|0/1/0/1\n"), DataError);
  EXPECT_THROW(parse_partitions("debug|a/b/c/d|0/1/0/1\n"), DataError);
}

TEST(Tasks, AreThoseOfTheOwner) {
  const auto tasks = parse_tasks(
      "12|0|FAILED|1024|0:05|NonZeroExitCode|/out|\n"
      "12|1|RUNNING|0|1-00:00:01|None|/out|\n"
      "13|0|RUNNING|0|0:01|None|/other|\n"
      "14|N/A|RUNNING|0|0:01|None|(null)|\n",
      "/out");
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks.at({12, 0}).state, "FAILED");
  EXPECT_EQ(tasks.at({12, 1}).seconds, 86401);
}

TEST(Tasks, OfOtherTextAreAnError) { EXPECT_THROW(parse_tasks("12|0|FAILED\n", "/out"), DataError); }

TEST(Durations, HaveDaysAndHoursOnlyIfTheyAreNeeded) {
  EXPECT_EQ(parse_duration("0:00"), 0);
  EXPECT_EQ(parse_duration("3:04"), 184);
  EXPECT_EQ(parse_duration("02:03:04"), 7384);
  EXPECT_EQ(parse_duration("1-02:03:04"), 93784);
  EXPECT_EQ(parse_duration("INVALID"), 0);
}

TEST(Ends, AreThoseOfTheCommand) {
  EXPECT_EQ(end_of({.state = "COMPLETED"})->exit_status, 0);
  EXPECT_EQ(end_of({.state = "FAILED", .wait_status = 4 << 8})->exit_status, 4);
  EXPECT_EQ(end_of({.state = "FAILED", .wait_status = SIGKILL})->exit_status, 128 + SIGKILL);
  EXPECT_EQ(end_of({.state = "OUT_OF_MEMORY"})->exit_status, 128 + SIGKILL);
  for (const char* state : {"COMPLETED", "OUT_OF_MEMORY"}) {
    EXPECT_EQ(end_of({.state = state})->infrastructure_error, "");
  }
}

TEST(Ends, OfTasksWhoseTimeIsUpSaySo) {
  EXPECT_TRUE(end_of({.state = "TIMEOUT", .wait_status = SIGTERM})->timed_out);
  EXPECT_FALSE(end_of({.state = "COMPLETED"})->timed_out);
}

TEST(Ends, ThatSlurmCausedMayBeRetried) {
  EXPECT_EQ(end_of({.state = "NODE_FAIL", .reason = "NodeDown"})->infrastructure_error,
            "ended as NODE_FAIL (NodeDown)");
  EXPECT_EQ(end_of({.state = "CANCELLED", .reason = "None"})->infrastructure_error, "ended as CANCELLED");
  EXPECT_EQ(end_of({.state = "FAILED", .wait_status = kCannotStart << 8})->infrastructure_error,
            "could not start the command");
}

TEST(Ends, AreNotThereBeforeTheTaskHasEnded) {
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED"}) {
    EXPECT_FALSE(end_of({.state = state})) << state;
  }
}

TEST(WaitingTasks, CannotStartIfSomebodyHasToChangeSomething) {
  for (const char* reason : {"PartitionConfig", "PartitionTimeLimit", "JobHeldAdmin", "launch failed requeued held"}) {
    EXPECT_TRUE(cannot_start({.state = "PENDING", .reason = reason})) << reason;
  }
  for (const char* reason : {"Priority", "Resources", "BeginTime", "None"}) {
    EXPECT_FALSE(cannot_start({.state = "PENDING", .reason = reason})) << reason;
  }
  EXPECT_FALSE(cannot_start({.state = "RUNNING", .reason = "None"}));
}

}  // namespace
}  // namespace phalanx::regress
