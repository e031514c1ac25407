// SPDX-License-Identifier: Apache-2.0
#include "tools/history/database.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "framework/base/error.h"
#include "tools/history/queries.h"

namespace phalanx::history {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class DatabaseTest : public ::testing::Test {
 protected:
  DatabaseTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  // Adds a run that has begun, and returns its number.
  static std::int64_t begin(Database& database) {
    const auto session = database.begin_session({.suite = "nightly", .started_at = 100, .git_commit = "abc"});
    const auto one = database.add_case(
        session, {.name = "a", .config = "configs/a.yaml", .overrides = {"optimizer.lr=0.1"}, .ranks = 2});
    return database.begin_run(one, {.environment = Environment{.hardware = "EPYC", .cores = 2, .hosts = {"node7"}},
                                    .started_at = 101,
                                    .folder = "runs/1/a/1"});
  }

  const std::string folder_ = ::testing::TempDir() + "/history";
  const std::string path_ = folder_ + "/results.sqlite";
};

TEST_F(DatabaseTest, KeepsEverythingThatARunReports) {
  {
    Database database(path_, OpenMode::kCreate);
    const auto run = begin(database);
    RunResult result{.exit_status = 4, .error = "test.accuracy", .seconds = 2.5};
    result.metrics = {
        {.split = "test", .name = "accuracy", .value = 0.953},
        {.split = "train", .name = "loss", .value = std::numeric_limits<double>::quiet_NaN(), .epoch = 3}};
    result.expectations = {
        {.key = "test.accuracy.min", .wanted = ">= 0.97", .got = "0.953", .value = 0.953, .met = false},
        {.key = "same_as", .wanted = "equal", .got = "equal", .value = std::nullopt, .met = true}};
    result.artefacts = {{"stdout", "runs/1/a/1/stdout.log"}};
    database.finish_run(run, result);
    database.set_state(1, CaseState::kFailed, "an expectation did not hold");
    database.finish_session(1);
  }
  Database database(path_, OpenMode::kReadOnly);
  const auto runs = find_runs(database, {.metrics = {{"test", "accuracy"}, {"run", "throughput"}}});
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].session.session.suite, "nightly");
  EXPECT_GT(runs[0].session.finished_at.value_or(0), 100);
  EXPECT_EQ(runs[0].record.overrides, std::vector<std::string>{"optimizer.lr=0.1"});
  EXPECT_EQ(runs[0].record.state, CaseState::kFailed);
  EXPECT_EQ(runs[0].exit_status, 4);
  EXPECT_EQ(runs[0].seconds, 2.5);
  EXPECT_EQ(runs[0].folder, "runs/1/a/1");
  EXPECT_EQ(runs[0].metrics, (std::vector<std::optional<double>>{0.953, std::nullopt}));
  const auto metrics = metrics_of(database, runs[0].id);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[1].epoch, 3);
  EXPECT_TRUE(std::isnan(metrics[1].value));
  const auto expectations = expectations_of(database, runs[0].id);
  ASSERT_EQ(expectations.size(), 2U);
  EXPECT_FALSE(expectations[0].value);
  EXPECT_EQ(expectations[1].got, "0.953");
  EXPECT_FALSE(expectations[1].met);
  EXPECT_EQ(artefacts_of(database, runs[0].id).at(0).path, "runs/1/a/1/stdout.log");
}

TEST_F(DatabaseTest, StoresAnEnvironmentOnce) {
  Database database(path_, OpenMode::kCreate);
  begin(database);
  begin(database);
  EXPECT_EQ(database.connection().execAndGet("SELECT count(*) FROM environments").getInt(), 1);
}

TEST_F(DatabaseTest, RefusesTwoRecordsOfOneRun) {
  Database database(path_, OpenMode::kCreate);
  begin(database);
  EXPECT_THAT([&] { database.begin_run(1, {.folder = "elsewhere"}); },
              ThrowsMessage<DataError>(HasSubstr(path_ + ": cannot be written: UNIQUE")));
  EXPECT_THROW(database.begin_run(99, {.folder = "x"}), DataError) << "there is no such case";
}

TEST_F(DatabaseTest, HasOneWriterAndAnyNumberOfReaders) {
  {
    Database writer(path_, OpenMode::kCreate);
    EXPECT_THAT([&] { Database(path_, OpenMode::kCreate); },
                ThrowsMessage<ConfigError>(HasSubstr(path_ + ": process " + std::to_string(::getpid()) + " on ")));
    Database reader(path_, OpenMode::kReadOnly), another(path_, OpenMode::kReadOnly);
    begin(writer);
    EXPECT_EQ(nights(reader, "", 0).size(), 1U);
    EXPECT_EQ(nights(another, "", 0).size(), 1U);
    EXPECT_THROW(begin(reader), DataError);
  }
  Database next(path_, OpenMode::kCreate);
}

TEST_F(DatabaseTest, HasAllRecordsAfterItsWriterWasKilled) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    Database database(path_, OpenMode::kCreate);
    begin(database);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status));
  Database database(path_, OpenMode::kCreate);
  const auto sessions = unfinished_sessions(database, "nightly", "1/1");
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(cases_of(database, sessions[0].id).at(0).record.name, "a");
  EXPECT_FALSE(find_runs(database, {}).at(0).exit_status);
  database.finish_session(sessions[0].id);
  EXPECT_THAT(unfinished_sessions(database, "nightly", "1/1"), SizeIs(0));
}

TEST_F(DatabaseTest, IsReadInAFolderThatCannotBeWrittenTo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can write to any folder";
  {
    Database database(path_, OpenMode::kCreate);
    begin(database);
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  Database database(path_, OpenMode::kReadOnly);
  EXPECT_EQ(nights(database, "", 0).size(), 1U);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(DatabaseTest, IsNotAnyOtherFile) {
  EXPECT_THAT([&] { Database(path_, OpenMode::kReadOnly); },
              ThrowsMessage<ConfigError>(HasSubstr(path_ + ": there is no such file")));
  EXPECT_THAT([&] { Database(folder_ + "/absent/results.sqlite", OpenMode::kCreate); },
              ThrowsMessage<ConfigError>(HasSubstr("absent/results.sqlite.lock: cannot be opened: No such file")));
  std::ofstream(path_) << std::string(5000, 'x');
  for (const auto mode : {OpenMode::kReadOnly, OpenMode::kCreate}) {
    EXPECT_THAT(
        [&] { Database(path_, mode); },
        ThrowsMessage<ConfigError>(HasSubstr(path_ + ": cannot be used as a database of nightly runs: file is")));
  }
}

TEST_F(DatabaseTest, OfANewerProgramIsRefusedByReadersAndWriters) {
  Database(path_, OpenMode::kCreate).connection().exec("PRAGMA user_version = 99");
  for (const auto mode : {OpenMode::kReadOnly, OpenMode::kCreate}) {
    EXPECT_THAT([&] { Database(path_, mode); }, ThrowsMessage<ConfigError>(HasSubstr("has schema version 99")));
  }
}

TEST(Records, AreTextInTheDatabase) {
  for (const auto state : {CaseState::kPlanned, CaseState::kRunning, CaseState::kPassed, CaseState::kFailed,
                           CaseState::kError, CaseState::kSkipped, CaseState::kQuarantined}) {
    EXPECT_EQ(parse_case_state(to_text(state)), state);
  }
  EXPECT_THROW(parse_case_state("great"), DataError);
  EXPECT_EQ(parse_metric("throughput"), (MetricName{"run", "throughput"}));
  EXPECT_EQ(parse_metric("test.accuracy"), (MetricName{"test", "accuracy"}));
  EXPECT_EQ(to_text(parse_metric("test.accuracy")), "test.accuracy");
  EXPECT_EQ(to_text(parse_metric("throughput")), "throughput");
}

}  // namespace
}  // namespace phalanx::history
