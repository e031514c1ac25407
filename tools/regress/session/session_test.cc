// SPDX-License-Identifier: Apache-2.0
// Sessions, from their cases to their records, on a fake place that runs no jobs.
#include <SQLiteCpp/Column.h>
#include <fcntl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/files.h"
#include "launch/exit_status.h"
#include "launch/temporary_folder.h"
#include "tools/regress/results/session_report.h"
#include "tools/regress/session/role.h"
#include "tools/regress/session/run_session.h"
#include "tools/regress/session/verdict.h"

namespace phalanx::regress {
namespace {

using history::CaseState;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The files that a fake job leaves, and its end.
struct Script {
  JobEnd end{};
  std::string summary = R"({"throughput": 100, "steps": 4, "expectations": []})";
  std::string metrics = R"({"step":1,"epoch":0,"split":"train","loss":2.0})"
                        "\n";
  std::string rows{};  // of chaos
};

class FakeJob final : public RunningJob {
 public:
  FakeJob(const Job& job, const Script& script, int& running) : end_(script.end), running_(running) {
    ++running_;
    write_atomically(job.folder + "/stderr.log", "the end\n");
    write_atomically(job.folder + "/metrics.jsonl", script.metrics);
    if (!script.summary.empty()) write_atomically(job.folder + "/summary.json", script.summary);
    if (!script.rows.empty()) write_atomically(job.folder + "/rows.json", script.rows);
    const bool is_half = job.folder.ends_with("-first_half");
    if (is_half) std::filesystem::create_directories(job.folder + "/checkpoints/step-00000002");
  }
  ~FakeJob() override { --running_; }
  std::optional<JobEnd> poll() override { return ++polls_ > 3 ? std::optional(end_) : std::nullopt; }
  void stop() override { end_.exit_status = kInterrupted; }
  void kill() override { end_.exit_status = 137; }

 private:
  JobEnd end_;
  int polls_ = 0;
  int& running_;
};

class FakePlace final : public Place {
 public:
  int slots() const override { return 2; }
  int slots_of(const Job& job) const override { return std::clamp(job.ranks, 1, 2); }
  int most_hosts() const override { return 1; }
  std::string description() const override { return "fake"; }
  void end_orphans() override { ++orphans_ended; }
  std::unique_ptr<RunningJob> start(const Job& job) override {
    started.push_back(job);
    const Script script = scripts.empty() ? Script{} : scripts.front();
    if (!scripts.empty()) scripts.pop_front();
    auto running_job = std::make_unique<FakeJob>(job, script, running);
    most_running = std::max(most_running, running);
    return running_job;
  }

  std::deque<Script> scripts{};  // of the next jobs; further ones pass
  std::vector<Job> started{};
  int running = 0, most_running = 0, orphans_ended = 0;
};

class SessionTest : public ::testing::Test {
 protected:
  static PlannedCase planned(const std::string& name, int ranks = 1) {
    return {.name = name, .config = "configs/" + name + ".yaml", .overrides = {"seed=1"}, .ranks = ranks, .retries = 1};
  }

  StoredSession begin(const std::vector<PlannedCase>& cases, const std::string& commit = "abc") {
    return begin_or_continue(database_, {.suite = "s", .started_at = now_++, .git_commit = commit}, cases);
  }

  SessionReport run(const std::vector<PlannedCase>& cases, const Quarantine& quarantine = {}) {
    const auto stored = begin(cases);
    CaseContext context{.database = database_,
                        .place = place_,
                        .environment = {.hardware = "cpu", .cores = 2, .hosts = {"h"}},
                        .session = stored.id,
                        .out = folder_.path(),
                        .program = "phalanx"};
    Console console(null_.get());
    SessionProgress progress(console, cases.size(), 0);
    EXPECT_TRUE(run_session(cases, stored, quarantine, context, progress));
    database_.finish_session(stored.id);
    return read_report(database_, stored.id);
  }

  int rows(const std::string& table) {
    return database_.connection().execAndGet("SELECT count(*) FROM " + table).getInt();
  }

  TemporaryFolder folder_;
  history::Database database_{folder_.path() + "/results.sqlite", history::OpenMode::kCreate};
  FakePlace place_;
  Descriptor null_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  std::int64_t now_ = 1'700'000'000;
};

TEST_F(SessionTest, RunsCasesAsManyAsFitAndRecordsThem) {
  const auto report = run({planned("a"), planned("b"), planned("c", 2), planned("d")});
  EXPECT_EQ(report.count(CaseState::kPassed), 4);
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(place_.most_running, 2);
  EXPECT_EQ(place_.orphans_ended, 1);
  EXPECT_THAT(place_.started[0].command, ElementsAre("phalanx", "train", "configs/a.yaml", "--set=seed=1",
                                                     "--run_dir=" + folder_.path() + "/runs/1/a/1"));
  EXPECT_EQ(report.cases[0].folder, "runs/1/a/1");
  EXPECT_EQ(rows("runs"), 4);
  EXPECT_EQ(rows("metrics WHERE split = 'run' AND name = 'throughput' AND value = 100"), 4);
}

TEST_F(SessionTest, ACommandPassesIfItEndsWithStatusZero) {
  place_.scripts = {{.summary = ""}, {.end = {.exit_status = 3}, .summary = ""}};
  const PlannedCase good{.name = "good", .command = "true", .folder = "/root"},
      bad{.name = "bad", .command = "false", .folder = "/root"};
  const auto report = run({good, bad});
  EXPECT_EQ(report.count(CaseState::kPassed), 1);
  EXPECT_EQ(report.count(CaseState::kFailed), 1);
  EXPECT_EQ(report.cases[1].reason, "status 3: the end");
  EXPECT_EQ(report.cases[1].config, "false");
  EXPECT_THAT(place_.started[0].command, ElementsAre("/bin/sh", "-c", HasSubstr("cd "), "sh", "/root", "true"));
}

TEST_F(SessionTest, ACaseThatRunsAloneTakesAllSlots) {
  auto alone = planned("b");
  alone.alone = true;
  run({planned("a"), alone, planned("c")});
  EXPECT_EQ(place_.most_running, 1);
}

TEST_F(SessionTest, OnlyInfrastructureErrorsAreRetried) {
  place_.scripts = {{.end = {.exit_status = kFailed, .infrastructure_error = "the host is gone"}},
                    {},
                    {.end = {.exit_status = kExpectationFailed},
                     .summary = R"({"expectations":[{"key":"k","wanted":">= 1","got":"0","value":0,"met":false}]})"}};
  auto alone = planned("a");
  alone.alone = true;
  const auto report = run({alone, planned("b")});
  EXPECT_EQ(report.cases[0].state, CaseState::kPassed);
  EXPECT_EQ(report.cases[1].state, CaseState::kFailed);
  EXPECT_EQ(report.cases[1].reason, "k: wanted >= 1, got 0");
  EXPECT_EQ(place_.started.size(), 3u);
  EXPECT_EQ(report.cases[0].folder, "runs/1/a/2");
  EXPECT_EQ(rows("expectations WHERE met = 0"), 1);
}

TEST_F(SessionTest, InfrastructureThatKeepsFailingIsAnError) {
  const Script broken{.end = {.exit_status = kFailed, .infrastructure_error = "the host is gone"}};
  place_.scripts = {broken, broken, broken};
  const auto report = run({planned("a")});
  EXPECT_EQ(report.cases[0].state, CaseState::kError);
  EXPECT_EQ(report.cases[0].reason, "the host is gone");
  EXPECT_EQ(place_.started.size(), 2u);
  EXPECT_FALSE(report.passed());
}

TEST_F(SessionTest, AFailureInQuarantineFailsNothing) {
  place_.scripts = {{.end = {.exit_status = kFailed}}};
  FlakyConfig flaky;
  flaky.cases = "a*";
  flaky.until = "2099-01-01";
  flaky.reason = "known";
  const auto report = run({planned("a1")}, Quarantine({flaky}));
  EXPECT_EQ(report.cases[0].state, CaseState::kQuarantined);
  EXPECT_THAT(report.cases[0].reason, HasSubstr("in quarantine until 2099-01-01: known"));
  EXPECT_TRUE(report.passed());
}

TEST_F(SessionTest, CasesThatCannotRunHereAreSkipped) {
  auto refused = planned("a"), hosts = planned("b", 2), at_run_time = planned("c");
  refused.refused = "no";
  hosts.hosts = 2;
  at_run_time.skip_if_refused = true;
  place_.scripts = {{.end = {.exit_status = kUsage}}};
  const auto report = run({refused, hosts, at_run_time});
  EXPECT_EQ(report.count(CaseState::kSkipped), 3);
  EXPECT_EQ(report.cases[1].reason, "needs 2 hosts, but there is one");
  EXPECT_EQ(report.cases[2].reason, "refused: the end");
  EXPECT_EQ(place_.started.size(), 1u);
}

TEST_F(SessionTest, ComparesWithAReferenceAndWithOneRank) {
  auto one = planned("a", 2);
  one.relations.same_as = SameAs{.config = "configs/single.yaml", .overrides = {"seed=1"}, .tolerance = 0.1};
  one.relations.scaling = 0.7;
  place_.scripts = {{},
                    {.metrics = R"({"step":1,"epoch":0,"split":"train","loss":3.0})"
                                "\n"},
                    {}};
  const auto report = run({one});
  EXPECT_EQ(report.cases[0].state, CaseState::kFailed);
  EXPECT_THAT(report.cases[0].reason, AllOf(HasSubstr("same_as: wanted losses within 0.1"), HasSubstr("2 and 3"),
                                            HasSubstr("scaling.min: wanted >= 0.7, got 0.5")));
  EXPECT_THAT(place_.started[1].command, AllOf(Contains("configs/single.yaml"), Contains("--set=expect={}"),
                                               Contains("--set=watch.every_steps=1")));
  EXPECT_THAT(place_.started[2].command, Contains("--set=launch.ranks=1"));
  EXPECT_THAT(place_.started[2].folder, ::testing::EndsWith("runs/1/a/1-one_rank"));
  EXPECT_EQ(rows("metrics WHERE split = 'case' AND name = 'scaling_efficiency' AND value = 0.5"), 1);
}

TEST_F(SessionTest, KillsAndResumesARunAndComparesItWithTheWholeOne) {
  auto one = planned("a");
  one.relations.resume_at = 0.5;
  const auto report = run({one});
  EXPECT_EQ(report.cases[0].state, CaseState::kPassed);
  ASSERT_EQ(place_.started.size(), 3u);
  EXPECT_THAT(place_.started[1].command, Contains("--set=checkpoint.every_steps=2"));
  EXPECT_THAT(place_.started[2].command, Contains("--resume=auto"));
  EXPECT_EQ(rows("runs WHERE role = 'first_half' AND exit_status = 137"), 1);
  EXPECT_EQ(rows("expectations WHERE key = 'resume_at' AND met = 1"), 1);
}

TEST_F(SessionTest, CountsTheFaultsThatARunSurvives) {
  auto one = planned("a");
  one.relations.faults = {.injected = 2, .survived = 2, .seed = 7};
  const std::string survives = R"({"run": 1, "fault": "stop", "verdict": "ok"})";
  const std::string fails = R"({"run": 2, "fault": "kill", "verdict": "it hangs"})";
  place_.scripts = {{}, {.end = {.exit_status = kFailed}, .rows = R"({"rows": [)" + survives + "," + fails + "]}"}};
  auto report = run({one});
  EXPECT_EQ(report.cases[0].state, CaseState::kFailed);
  EXPECT_THAT(report.cases[0].reason, HasSubstr("faults.survived: wanted >= 2 of 2 runs with a fault, got 1 of 2 runs "
                                                "with a fault; run 2, kill: it hangs"));
  EXPECT_EQ(
      place_.started[1].command,
      (std::vector<std::string>{"phalanx", "chaos", "configs/a.yaml", "--set=seed=1", "--set=expect={}", "--runs=2",
                                "--seed=7", "--json=" + folder_.path() + "/runs/1/a/1-faults/rows.json"}));
  one.relations.faults->survived = 1;
  place_.scripts = {{}, {.end = {.exit_status = kFailed}, .rows = R"({"rows": [)" + survives + "," + fails + "]}"}};
  EXPECT_TRUE(run({one}).passed());
}

TEST_F(SessionTest, AChaosThatCannotRunFailsItsCase) {
  auto one = planned("a");
  one.relations.faults = {.injected = 2, .survived = 2};
  place_.scripts = {{}, {.end = {.exit_status = kFailed}}};
  const auto report = run({one});
  EXPECT_EQ(report.cases[0].state, CaseState::kFailed);
  EXPECT_THAT(report.cases[0].reason, StartsWith("faults run: status 1"));
}

TEST_F(SessionTest, ComparesThroughputWithEarlierNights) {
  auto one = planned("a");
  one.relations.of_median = 0.9;
  for (int night = 0; night < 3; ++night) EXPECT_TRUE(run({one}).passed());
  place_.scripts = {{.summary = R"({"throughput": 89})"}};
  const auto report = run({one});
  EXPECT_THAT(report.cases[0].reason, StartsWith("throughput.of_median: wanted >= 90"));
}

TEST_F(SessionTest, GoesOnWhereItWasKilled) {
  const std::vector<PlannedCase> cases{planned("a"), planned("b")};
  const auto first = begin(cases);
  database_.set_state(first.cases[0].id, CaseState::kPassed, "");
  database_.set_state(first.cases[1].id, CaseState::kRunning, "");
  database_.begin_run(first.cases[1].id, {.started_at = 1, .folder = "x"});
  const auto second = begin(cases);
  EXPECT_TRUE(second.resumed);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.cases[0].state, CaseState::kPassed);
  EXPECT_EQ(second.cases[1].state, CaseState::kPlanned);
  EXPECT_EQ(second.cases[1].attempts, 1);
  run(cases);
  ASSERT_EQ(place_.started.size(), 1u);
  EXPECT_THAT(place_.started[0].folder, ::testing::EndsWith("/b/2"));
}

TEST_F(SessionTest, AnotherCommitOrOtherCasesBeginAnotherSession) {
  const auto first = begin({planned("a")});
  const auto second = begin({planned("a")}, "def");
  EXPECT_FALSE(second.resumed);
  EXPECT_FALSE(begin({planned("a"), planned("b")}, "def").resumed);
  const auto abandoned = read_report(database_, first.id);
  EXPECT_EQ(abandoned.cases[0].state, CaseState::kError);
  EXPECT_GT(abandoned.finished_at, 0);
  now_ += kLongestPause + 1;
  EXPECT_FALSE(begin({planned("a"), planned("b")}, "def").resumed) << "too old";
}

TEST_F(SessionTest, JUnitHasACaseForEachCaseWithItsLogs) {
  place_.scripts = {{.end = {.exit_status = kFailed}}};
  auto report = run({planned("a"), planned("b")});
  report.cases[0].reason = "<&\" \x01";
  const auto xml = to_junit(report, folder_.path(), "host");
  EXPECT_THAT(xml, HasSubstr(R"(<testsuite name="s" tests="2" failures="1" errors="0" skipped="0" time=)"));
  EXPECT_THAT(xml, HasSubstr(R"(<failure message="&lt;&amp;&quot; \x01" type="failed">)"));
  EXPECT_THAT(xml, HasSubstr("<system-err>the end\n</system-err>"));
  EXPECT_THAT(xml, Not(HasSubstr("\x01")));
}

TEST_F(SessionTest, TheSummaryNamesFailuresAndCounts) {
  place_.scripts = {{.end = {.exit_status = kFailed}}};
  const auto text = to_json(run({planned("a"), planned("b")}), "/out");
  EXPECT_THAT(text, AllOf(HasSubstr(R"("status": "failed")"), HasSubstr("s: 2 cases: 1 passed, 1 failed"),
                          HasSubstr(R"("folder": "/out/runs/1/a/1")"), HasSubstr(R"("quarantined": 0)")));
}

TEST(Verdict, NamesTheTimeLimit) {
  const PlannedCase planned{.name = "a", .time_limit = 5};
  const auto verdict = judge(planned, {.exit_status = 137, .timed_out = true}, {}, "rank 0 has waited 3 s\n");
  EXPECT_EQ(verdict.state, CaseState::kFailed);
  EXPECT_EQ(verdict.reason, "had not ended after 5 s; its last words: rank 0 has waited 3 s");
  EXPECT_FALSE(verdict.may_be_retried);
}

TEST(Verdict, NeverRetriesWhatTheRunItselfHasFound) {
  const JobEnd end{.exit_status = kUsage, .infrastructure_error = "x"};
  EXPECT_FALSE(judge({.name = "a"}, end, {}, "").may_be_retried);
  EXPECT_EQ(judge({.name = "a"}, end, {}, "").state, CaseState::kFailed);
}

TEST(Role, ARunIsKilledBetweenItsFirstAndItsLastStep) {
  EXPECT_EQ(step_to_kill_at(0.5, 10), 5);
  EXPECT_EQ(step_to_kill_at(0, 10), 1);
  EXPECT_EQ(step_to_kill_at(1, 10), 9);
  EXPECT_EQ(step_to_kill_at(0.5, 1), 0);
}

TEST(Progress, HasALineForEachCaseAndTheReasonsOfFailures) {
  EXPECT_EQ(ended_lines({.total = 12, .ended = 3}, {.name = "a", .seconds = 1.25, .folder = "runs/1/a/1"}),
            "[ 3/12] passed      a  1.2 s\n");
  EXPECT_EQ(ended_lines({.total = 2, .ended = 2},
                        {.name = "a", .state = CaseState::kFailed, .reason = "why\x1b", .seconds = 1, .folder = "f"}),
            "[2/2] FAILED      a  1.0 s\n    why\\x1b\n    see f\n");
}

TEST(Progress, TheLineOfATerminalFitsIt) {
  const Counts counts{.total = 10, .ended = 4, .failed = 1};
  EXPECT_EQ(status_line(counts, 2, 60, {{"a", 61}}, 100), "4/10 ended, 1 failed, about 3:00 left; running: a (1:01)");
  EXPECT_EQ(status_line(counts, 0, 0, {}, 8), "4/10 en…");
}

}  // namespace
}  // namespace phalanx::regress
