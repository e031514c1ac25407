// SPDX-License-Identifier: Apache-2.0
#include "tools/history/queries.h"

#include <SQLiteCpp/Statement.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>
#include <functional>
#include <set>

#include "tools/history/testing/planted.h"

namespace phalanx::history {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string new_path(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder + "/results.sqlite";
}

class Queries : public ::testing::Test {
 protected:
  Queries() { plant(database_, {.nights = 10, .cases = 3, .epochs = 2}); }

  Database database_{new_path("queries"), OpenMode::kCreate};
};

TEST_F(Queries, ReturnTheNewestNightsOfASuite) {
  database_.begin_session({.suite = "weekly", .started_at = 1, .git_commit = "old"});
  EXPECT_THAT(nights(database_, "", 0), SizeIs(11));
  const auto newest = nights(database_, "nightly", 2);
  ASSERT_THAT(newest, SizeIs(2));
  EXPECT_EQ(newest[0].session.git_commit, planted_commit(9));
  EXPECT_EQ(newest[1].session.git_commit, planted_commit(8));
  EXPECT_THAT(nights(database_, "weekly", 2), SizeIs(1));
}

TEST_F(Queries, FindRunsByNightConfigCaseAndState) {
  EXPECT_THAT(find_runs(database_, {}), SizeIs(30));
  EXPECT_THAT(find_runs(database_, {.nights = 2}), SizeIs(6));
  EXPECT_THAT(find_runs(database_, {.suite = "weekly"}), SizeIs(0));
  for (const char* config : {"configs/mnist_1.yaml", "mnist_1.yaml", "mnist_1", "*_1"}) {
    EXPECT_THAT(find_runs(database_, {.config = config, .nights = 2}), SizeIs(2)) << config;
  }
  EXPECT_THAT(find_runs(database_, {.case_name = "case_2"}), SizeIs(10));
  EXPECT_THAT(find_runs(database_, {.case_name = "case_[01]"}), SizeIs(20));
  EXPECT_THAT(find_runs(database_, {.state = "failed"}), SizeIs(0));
  const auto runs = find_runs(database_, {.metrics = {{"run", "throughput"}}, .nights = 1});
  ASSERT_THAT(runs, SizeIs(3));
  EXPECT_EQ(runs[0].record.name, "case_0");
  EXPECT_NEAR(runs[0].metrics[0].value_or(0), 1000, 50);
  EXPECT_THAT(find_runs(database_, {.folder = runs[0].folder}), SizeIs(1));
}

TEST_F(Queries, FindTheSeriesOfEachCaseAndMetric) {
  EXPECT_THAT(find_series(database_, {}), SizeIs(3 * 4)) << "values of epochs are not comparable";
  const auto found = find_series(database_, {.case_name = "case_1", .metric = parse_metric("test.accuracy")});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].hardware, "planted");
  ASSERT_THAT(found[0].nights, SizeIs(10));
  EXPECT_EQ(found[0].nights[0].commit, planted_commit(0));
  EXPECT_THAT(found[0].nights[9].values, ElementsAre(0.97));
  EXPECT_THAT(series(database_, "case_1", "throughput"), SizeIs(10));
  EXPECT_THAT(series(database_, "absent", "throughput"), SizeIs(0));
}

TEST_F(Queries, SeriesHaveAllCompletedRunsOfANightOnItsHardware) {
  const auto session = database_.begin_session({.suite = "nightly", .started_at = 2'000'000'000, .git_commit = "new"});
  const auto one = database_.add_case(session, {.name = "case_0", .config = "configs/mnist_0.yaml"});
  const Environment other{.hardware = "other", .cores = 2};
  const auto add = [&](int attempt, const std::string& role, int status, double value) {
    const auto run = database_.begin_run(one, {.attempt = attempt, .role = role, .environment = other});
    database_.finish_run(run, {.exit_status = status, .metrics = {{"run", "throughput", value}}});
  };
  add(1, "main", 3, 1);  // a rank died
  add(2, "main", 0, 10);
  add(3, "main", 4, 20);  // an expectation did not hold
  add(1, "reference", 0, 30);
  const auto nights = series(database_, "case_0", "throughput");
  ASSERT_THAT(nights, SizeIs(1)) << "the nights before had other hardware";
  EXPECT_THAT(nights[0].values, ElementsAre(10, 20));
}

TEST_F(Queries, SeriesOfComparisonsHaveTheValuesOfTheRunsThatCompletedThem) {
  const auto session = database_.begin_session({.suite = "nightly", .started_at = 2'000'000'000, .git_commit = "new"});
  const auto one = database_.add_case(session, {.name = "case_0", .config = "configs/mnist_0.yaml"});
  const auto run = database_.begin_run(one, {.role = "one_rank", .environment = Environment{.hardware = "planted"}});
  database_.finish_run(run, {.metrics = {{"run", "throughput", 600}, {"case", "scaling_efficiency", 0.8}}});
  const auto nights = series(database_, "case_0", "case.scaling_efficiency");
  ASSERT_THAT(nights, SizeIs(1));
  EXPECT_THAT(nights[0].values, ElementsAre(0.8));
  EXPECT_THAT(series(database_, "case_0", "throughput"), SizeIs(10)) << "one rank is no measure of the case";
}

// Collects the texts of all statements that a connection executes.
int note(unsigned, void* context, void* statement, void*) {
  static_cast<std::set<std::string>*>(context)->insert(::sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
  return 0;
}

// Returns the steps by which SQLite executes a query.
std::vector<std::string> plan_of(SQLite::Database& connection, const std::string& sql) {
  SQLite::Statement plan(connection, "EXPLAIN QUERY PLAN " + sql);
  std::vector<std::string> steps;
  while (plan.executeStep()) steps.push_back(plan.getColumn(3).getString());
  return steps;
}

TEST(TenThousandRuns, AreNeverReadAsAWhole) {
  Database database(new_path("many"), OpenMode::kCreate);
  plant(database, {.nights = 200, .cases = 50, .epochs = 1});
  ASSERT_EQ(database.connection().execAndGet("SELECT count(*) FROM runs").getInt(), 10'000);
  std::set<std::string> executed;
  ASSERT_EQ(::sqlite3_trace_v2(database.connection().getHandle(), SQLITE_TRACE_STMT, note, &executed), SQLITE_OK);

  EXPECT_THAT(nights(database, "", 30), SizeIs(30));
  EXPECT_THAT(nights(database, "nightly", 30), SizeIs(30));
  EXPECT_THAT(unfinished_sessions(database, "nightly", "1/1"), SizeIs(0));
  EXPECT_THAT(cases_of(database, 7), SizeIs(50));
  EXPECT_THAT(metrics_of(database, 7), SizeIs(6));
  EXPECT_THAT(expectations_of(database, 7), SizeIs(1));
  EXPECT_THAT(artefacts_of(database, 7), SizeIs(0));
  const std::vector<MetricName> metrics{{"run", "throughput"}, {"test", "accuracy"}};
  EXPECT_THAT(find_runs(database, {.metrics = metrics, .nights = 7}), SizeIs(350));
  EXPECT_THAT(find_runs(database, {.suite = "nightly", .config = "mnist_3", .metrics = metrics}), SizeIs(200));
  EXPECT_THAT(find_runs(database, {.case_name = "case_3", .state = "passed"}), SizeIs(200));
  EXPECT_THAT(find_runs(database, {.case_name = "case_4*", .nights = 1}), SizeIs(11));
  EXPECT_THAT(find_runs(database, {.folder = "runs/7/case_3/1"}), SizeIs(1));
  EXPECT_THAT(series(database, "case_3", "throughput"), SizeIs(200));
  EXPECT_THAT(find_series(database, {.suite = "nightly", .nights = 90}), SizeIs(200));

  ::sqlite3_trace_v2(database.connection().getHandle(), 0, nullptr, nullptr);
  EXPECT_GE(executed.size(), 14U);
  for (const auto& sql : executed) {
    for (const auto& step : plan_of(database.connection(), sql)) {
      EXPECT_THAT(step, AnyOf(Not(HasSubstr("SCAN")), HasSubstr("SCAN sessions"))) << sql;
      EXPECT_THAT(step, Not(HasSubstr("AUTOMATIC"))) << sql;
    }
  }
}

}  // namespace
}  // namespace phalanx::history
