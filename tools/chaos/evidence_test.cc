// SPDX-License-Identifier: Apache-2.0
// What the judgement of a run rests on: its results, what it left, and the damage that was done to it.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/temporary_folder.h"
#include "tools/chaos/attempt.h"
#include "tools/chaos/damage.h"
#include "tools/chaos/leftovers.h"
#include "tools/chaos/mounts.h"
#include "tools/chaos/row.h"
#include "tools/chaos/subject.h"

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class Evidence : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  void write_results(const std::string& weights, int steps, double loss) const {
    write(path("weights.safetensors"), weights);
    write(path("summary.json"), nlohmann::json{{"steps", steps}, {"test", {{"loss", loss}}}}.dump());
  }

  TemporaryFolder folder_;
};

using Difference = Evidence;

TEST_F(Difference, IsOneBitOfTheWeights) {
  const Reference reference{.weights = "abc", .steps = 9};
  write_results("abc", 9, 1);
  EXPECT_EQ(difference(folder_.path(), reference, reference.bitwise), "");
  write_results("abb", 9, 1);
  EXPECT_THAT(difference(folder_.path(), reference, reference.bitwise), HasSubstr("weights differ"));
}

TEST_F(Difference, IsAMissingStep) {
  write_results("abc", 8, 1);
  EXPECT_THAT(difference(folder_.path(), {.weights = "abc", .steps = 9}, true), HasSubstr("after step 8 instead of 9"));
}

TEST_F(Difference, IsALossOutsideOfTheBandIfBitsVary) {
  const Reference reference{.weights = "abc", .loss = 1, .spread = 0.01, .bitwise = false, .steps = 9};
  write_results("other", 9, 1.05);
  EXPECT_EQ(difference(folder_.path(), reference, reference.bitwise), "");
  write_results("other", 9, 1.2);
  EXPECT_THAT(difference(folder_.path(), reference, reference.bitwise), HasSubstr("its loss is 1.2"));
}

using Damage = Evidence;

TEST_F(Damage, ChangesOneFile) {
  for (const char* how : {"checkpoint_torn", "checkpoint_truncated", "checkpoint_flipped"}) {
    for (const char* name : {"a", "b", "c"}) write(path(name), std::string(100, name[0]));
    const std::string damaged = damage(folder_.path(), how, 5);
    int different = 0;
    for (const char* name : {"a", "b", "c"}) {
      const bool same = fs::exists(path(name)) && read_file(path(name)) == std::string(100, name[0]);
      different += same ? 0 : 1;
      EXPECT_EQ(same, damaged != path(name)) << how;
    }
    EXPECT_EQ(different, 1) << how;
  }
}

TEST_F(Damage, NeedsAFile) { EXPECT_THROW(damage(folder_.path(), "checkpoint_torn", 1), Error); }

using Leftovers = Evidence;

TEST_F(Leftovers, AreProcessesThatKnowTheFolder) {
  Attempt attempt({{.command = {"sh", "-c", "sleep 100 & exit 3", folder_.path()}}}, folder_.path(), "");
  attempt.wait(20);
  EXPECT_EQ(attempt.status(), 3);
  EXPECT_THAT(processes_with("no such text anywhere on a command line"), IsEmpty());
  write(path("input"), "");
  Attempt running({{.command = {"tail", "-f", path("input")}}}, folder_.path(), "");
  EXPECT_THAT(processes_with(folder_.path()), testing::SizeIs(1));
  EXPECT_EQ(end_orphans(folder_.path(), 0), 1);
  running.wait(20);
  EXPECT_EQ(running.status(), 128 + SIGKILL);
  attempt.signal_groups(SIGKILL);
}

TEST_F(Leftovers, AreUnfinishedFiles) {
  for (const char* folder : {"tmp", "run/logs", "run/checkpoints/step-1.tmp", "run/checkpoints/step-2"}) {
    fs::create_directories(path(folder));
  }
  EXPECT_THAT(leaks(path("tmp"), path("run")), ElementsAre(path("run/checkpoints/step-1.tmp")));
  write(path("run/logs/rank0.failure"), "");
  write(path("run/logs/rank0.log"), "");
  EXPECT_THAT(leaks(path("tmp"), path("run")),
              ElementsAre(path("run/logs/rank0.failure"), path("run/checkpoints/step-1.tmp")));
  write(path("run/logs/rank1.lost"), "");
  fs::create_directories(path("tmp/meeting"));
  EXPECT_THAT(leaks(path("tmp"), path("run")),
              ::testing::UnorderedElementsAre(path("tmp/meeting"), path("run/logs/rank0.failure"),
                                              path("run/logs/rank1.lost"), path("run/checkpoints/step-1.tmp")));
}

TEST_F(Leftovers, AreFilesThatNobodyUses) {
  const std::string shared = path("shared");
  fs::create_directories(shared);
  write(shared + "/before", "");
  const auto before = files_of_all(shared);
  write(shared + "/used", "");
  write(shared + "/unused", "");
  Attempt user({{.command = {"tail", "-f", shared + "/used"}}}, folder_.path(), "");
  for (int i = 0; i < 2000 && unused_files(shared, before, 0).size() > 1; ++i) user.wait(0.01);
  EXPECT_THAT(unused_files(shared, before, 0), ElementsAre(shared + "/unused"));
  user.signal(SIGKILL);
  user.wait(20);
  EXPECT_THAT(unused_files(shared, before, 0.1), ElementsAre(shared + "/unused", shared + "/used"));
}

using AttemptTest = Evidence;

TEST_F(AttemptTest, MeasuresFromTheFaultUntilSomethingIsSaid) {
  const std::string script = "echo before >&2; sleep 0.1; touch " + path("note") + "; sleep 0.2; echo after >&2";
  Attempt attempt({{.command = {"sh", "-c", script}}}, folder_.path(), path("note"));
  EXPECT_TRUE(attempt.wait_for_fault(20));
  attempt.wait(20);
  ASSERT_TRUE(attempt.detected_seconds());
  EXPECT_GE(*attempt.detected_seconds(), 0.1);
  EXPECT_EQ(attempt.errors(), "before\nafter\n");
}

TEST_F(AttemptTest, KnowsThatNothingWasSaid) {
  const std::string script = "echo before >&2; sleep 0.1; touch " + path("note") + "; sleep 0.1";
  Attempt attempt({{.command = {"sh", "-c", script}}}, folder_.path(), path("note"));
  attempt.wait(20);
  EXPECT_TRUE(attempt.fault_has_happened());
  EXPECT_FALSE(attempt.detected_seconds());
}

TEST_F(Evidence, AFullDiskTakesNoByteUntilItIsFreed) {
  // In a child, since the view of mounted file systems is the whole process's.
  const pid_t child = ::fork();
  if (child == 0) {
    if (!enter_own_mounts().empty()) ::_exit(77);
    SmallDisk disk(folder_.path(), 1 << 20);
    disk.fill();
    std::ofstream full(path("x"));
    full << "one line\n";
    full.close();
    if (full) ::_exit(1);
    disk.free();
    std::ofstream free(path("x"));
    free << "one line\n";
    free.close();
    ::_exit(free ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Rows, AreObjectsWithAVerdict) {
  Row row{.trial = {.number = 3, .fault = &fault_named("kill"), .rank = 1, .step = 17},
          .detected_seconds = 0.25,
          .recovered = "resumed",
          .lost_steps = 2,
          .lost_samples = 0,
          .status = 3};
  Findings findings{.config = "x.yaml", .seed = 5, .steps = 40, .rows = {row}, .skipped = {{"stop", "one rank"}}};
  auto json = nlohmann::json::parse(to_json(findings));
  EXPECT_EQ(json["skipped"][0]["why"], "one rank");
  EXPECT_EQ(json["rows"][0]["fault"], "kill");
  EXPECT_EQ(json["rows"][0]["detected_seconds"], 0.25);
  EXPECT_EQ(json["rows"][0]["recovered"], true);
  EXPECT_EQ(json["rows"][0]["verdict"], "ok");
  EXPECT_TRUE(json["rows"][0]["returned_seconds"].is_null());
  for (const auto& [field, value] : std::map<std::string, nlohmann::json>{{"rank", 1},
                                                                          {"step", 17},
                                                                          {"how", "resumed"},
                                                                          {"lost_steps", 2},
                                                                          {"lost_samples", 0},
                                                                          {"orphans", 0},
                                                                          {"leaked", nlohmann::json::array()}}) {
    EXPECT_EQ(json["rows"][0][field], value) << field;
  }
  EXPECT_EQ(to_line(row, 50), "3/50  kill  rank 1, step 17, detected after 0.25 s, resumed, steps repeated: 2: ok");

  findings.rows[0].recovered = "replaced";
  findings.rows[0].returned_seconds = 0.14;
  EXPECT_EQ(nlohmann::json::parse(to_json(findings))["rows"][0]["returned_seconds"], 0.14);
  EXPECT_THAT(to_line(findings.rows[0], 50), HasSubstr("replaced after 0.14 s, steps repeated: 2: ok"));
  EXPECT_THAT(to_table(findings), HasSubstr("<= 0.25 s        <= 0.14 s                2\n"));

  findings.rows[0].recovered.clear();
  findings.rows[0].lost_samples.reset();
  findings.rows[0].detected_seconds.reset();
  findings.rows[0].problems = {"nothing was shown", "files were left"};
  json = nlohmann::json::parse(to_json(findings));
  EXPECT_TRUE(json["rows"][0]["detected_seconds"].is_null());
  EXPECT_TRUE(json["rows"][0]["lost_samples"].is_null());
  EXPECT_EQ(json["rows"][0]["recovered"], false);
  EXPECT_EQ(json["rows"][0]["verdict"], "nothing was shown; files were left");
  EXPECT_THAT(to_table(findings), HasSubstr("skipped stop: one rank"));
}

}  // namespace
}  // namespace phalanx::chaos
