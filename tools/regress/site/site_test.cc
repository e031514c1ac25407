// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "framework/base/files.h"
#include "framework/base/text.h"
#include "tools/history/database.h"
#include "tools/history/records.h"
#include "tools/regress/site/json_file.h"
#include "tools/regress/site/log_excerpt.h"
#include "tools/regress/site/nights.h"
#include "tools/regress/site/run_files.h"
#include "tools/regress/site/write_site.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using history::CaseState;
using site::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::int64_t kFirstNight = 1'790'000'000, kDay = 24 * 3600;

// Makes an empty folder for a nightly, with its database.
class SiteTest : public ::testing::Test {
 protected:
  SiteTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    database_.emplace(folder_ + "/results.sqlite", history::OpenMode::kCreate);
  }
  ~SiteTest() override {
    database_.reset();
    fs::remove_all(folder_);
  }

  std::int64_t add_night(int number, const std::string& commit, const std::string& shard = "1/1") {
    return database_->begin_session(
        {.suite = "nightly", .started_at = kFirstNight + number * kDay, .git_commit = commit, .shard = shard});
  }

  // Adds a case with a run that has ended. Returns the run.
  std::int64_t add_run(std::int64_t session, const std::string& name, const history::RunResult& result,
                       const std::string& run_folder = "runs/none") {
    const auto one = database_->add_case(session, {.name = name, .config = "configs/" + name + ".yaml"});
    const auto run = database_->begin_run(one, {.started_at = kFirstNight, .folder = run_folder});
    database_->finish_run(run, result);
    const bool passed = result.exit_status == 0;
    database_->set_state(one, passed ? CaseState::kPassed : CaseState::kFailed, passed ? "" : "it did not learn");
    return run;
  }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(folder_ + "/" + path).parent_path());
    std::ofstream(folder_ + "/" + path, std::ios::binary) << text;
  }

  void write_pages() { write_site(*database_, folder_ + "/report"); }

  // Reads a data file as the page does.
  Json data(const std::string& name) {
    const std::string text = read_file(folder_ + "/report/data/" + name + ".js"), begin = "receive(\"" + name + "\",";
    EXPECT_THAT(text, StartsWith(begin));
    return Json::parse(text.substr(begin.size(), text.rfind(");") - begin.size()));
  }

  std::string folder_ = ::testing::TempDir() + "/site_test." + std::to_string(::getpid());
  std::optional<history::Database> database_;
};

TEST_F(SiteTest, AnEmptyDatabaseHasAPage) {
  write_pages();
  EXPECT_THAT(data("overview").at("suites"), IsEmpty());
  for (const char* file : {"index.html", "site.css", "site.js"}) {
    EXPECT_FALSE(read_file(folder_ + "/report/" + file).empty()) << file;
  }
}

TEST_F(SiteTest, ThePageRefersToNothingOnTheNetwork) {
  write_pages();
  for (const char* file : {"index.html", "site.css", "site.js"}) {
    std::string text = read_file(folder_ + "/report/" + file);
    const std::string name_of_svg = "http://www.w3.org/2000/svg";  // is a name, and is never loaded
    for (std::size_t at = 0; (at = text.find(name_of_svg)) != std::string::npos;) text.erase(at, name_of_svg.size());
    EXPECT_THAT(text, AllOf(Not(HasSubstr("http:")), Not(HasSubstr("https:")))) << file;
  }
}

TEST_F(SiteTest, TheMatrixHasALetterForEachCaseAndNight) {
  const auto first = add_night(0, "a"), second = add_night(1, "b");
  add_run(first, "old", {});
  add_run(first, "both", {.exit_status = 4});
  add_run(second, "both", {});
  database_->add_case(second, {.name = "new", .config = "configs/new.yaml", .state = CaseState::kQuarantined});
  write_pages();
  const Json suite = data("overview").at("suites").at(0);
  EXPECT_THAT(suite.at("nights"), SizeIs(2));
  Json states = Json::object();
  for (const auto& one : suite.at("cases")) states[one.at(1).get<std::string>()] = one.at(3);
  EXPECT_EQ(states, Json({{"both", "fp"}, {"new", ".q"}, {"old", "p."}}));
}

TEST_F(SiteTest, ShardsOfOneCommitAreOneNight) {
  const auto first = add_night(0, "a", "1/2"), second = add_night(0, "a", "2/2"), third = add_night(1, "a", "1/2");
  const auto history = site::read_history(database_->connection());
  ASSERT_THAT(history.suites, SizeIs(1));
  const auto& nights = history.suites[0].nights;
  ASSERT_THAT(nights, SizeIs(2));
  EXPECT_THAT(nights[0].sessions, ElementsAre(first, second));
  EXPECT_THAT(nights[1].sessions, ElementsAre(third));
  EXPECT_EQ(history.night_of.at(second), first);
}

TEST_F(SiteTest, AFailureIsShownWithWhatWasWantedAndTheEndOfItsLog) {
  const auto night = add_night(0, "a");
  write("runs/1/stderr.log",
        "first\nrank 0 has waited 20 s in all_reduce #4 of world for rank 1\n\x1b[31mlast</script>\n");
  add_run(night, "case",
          {.exit_status = 4,
           .error = "no",
           .expectations = {{.key = "test.accuracy.min", .wanted = ">= 0.9", .got = "0.5", .value = 0.5, .met = false},
                            {.key = "train.loss.max", .wanted = "<= 1", .got = "0.5", .value = 0.5, .met = true}}},
          "runs/1");
  write_pages();
  const Json run = data("nights/" + std::to_string(night)).at("cases").at(0).at("runs").at(0);
  EXPECT_EQ(run.at("unmet"),
            Json::array({{{"key", "test.accuracy.min"}, {"wanted", ">= 0.9"}, {"got", "0.5"}, {"met", false}}}));
  EXPECT_EQ(run.at("stalls"), Json::array({"rank 0 has waited 20 s in all_reduce #4 of world for rank 1"}));
  EXPECT_THAT(run.at("logs").at(0).at("tail").get<std::string>(), HasSubstr("\\x1b[31mlast</script>\n"));
  EXPECT_EQ(run.at("logs").at(0).at("link"), "../runs/1/stderr.log");
}

TEST_F(SiteTest, ARunHasTheCurvesOfItsFolder) {
  const auto night = add_night(0, "a");
  write("runs/1/config.yaml", "optimizer: {lr: 0.5}\n");
  write("runs/1/metrics.jsonl",
        R"({"step": 1, "epoch": 0, "split": "train", "loss": 2.5, "samples_per_second": 10, "step_ms": {"forward": 3}})"
        "\n");
  const auto run = add_run(night, "case", {.metrics = {{.split = "run", .name = "throughput", .value = 10}}}, "runs/1");
  write_pages();
  const Json page = data("runs/" + std::to_string(run));
  EXPECT_EQ(page.at("curves").at("train/loss"), Json::array({Json::array({1.0, 2.5})}));
  EXPECT_EQ(page.at("phases").at("forward"), Json::array({Json::array({1.0, 3.0})}));
  EXPECT_EQ(page.at("metrics").at("run/throughput"), 10.0);
  EXPECT_FALSE(page.contains("problem"));
  EXPECT_EQ(data("configs/" + page.at("config").get<std::string>()), Json({{"optimizer.lr", "0.5"}}));
}

TEST_F(SiteTest, RunsOfTheSameConfigShareIt) {
  const auto night = add_night(0, "a");
  for (const char* path : {"runs/1", "runs/2"}) {
    write(std::string(path) + "/config.yaml", "seed: 1\n");
    write(std::string(path) + "/metrics.jsonl", "");
  }
  const auto one = add_run(night, "one", {}, "runs/1"), two = add_run(night, "two", {}, "runs/2");
  write_pages();
  EXPECT_EQ(data("runs/" + std::to_string(one)).at("config"), data("runs/" + std::to_string(two)).at("config"));
}

TEST_F(SiteTest, AFolderThatIsMissingOrMalformedIsNamedOnThePage) {
  const auto night = add_night(0, "a");
  write("runs/broken/metrics.jsonl", "{}\n{}\n");
  const auto absent = add_run(night, "absent", {}, "runs/absent"), broken = add_run(night, "broken", {}, "runs/broken");
  write_pages();
  EXPECT_THAT(data("runs/" + std::to_string(absent)).at("problem").get<std::string>(),
              HasSubstr("there is no such folder"));
  EXPECT_THAT(data("runs/" + std::to_string(broken)).at("problem").get<std::string>(), HasSubstr("metrics.jsonl:1"));
}

TEST_F(SiteTest, LaterCallsAddOnlyWhatIsNew) {
  const auto night = add_night(0, "a");
  const auto run = add_run(night, "case", {});
  write_pages();
  const std::string path = folder_ + "/report/data/runs/" + std::to_string(run) + ".js";
  const auto before = fs::last_write_time(path);
  const auto other = add_run(add_night(1, "b"), "case", {});
  write_pages();
  EXPECT_EQ(fs::last_write_time(path), before);
  EXPECT_TRUE(fs::exists(folder_ + "/report/data/runs/" + std::to_string(other) + ".js"));
}

TEST_F(SiteTest, FilesOfAnotherDatabaseAreRemoved) {
  write("report/data/of", "1 another database\n");
  write("report/data/runs/7.js", "receive(\"runs/7\",{});\n");
  add_run(add_night(0, "a"), "case", {});
  write_pages();
  EXPECT_FALSE(fs::exists(folder_ + "/report/data/runs/7.js"));
}

TEST_F(SiteTest, ALastingChangeIsOnTheFirstPageAndOnThatOfTheCase) {
  std::int64_t first_slow = 0;
  for (int i = 0; i < 30; ++i) {
    const auto night = add_night(i, format_text("commit%d", i));
    if (i == 20) first_slow = night;
    const double throughput = (i < 20 ? 1000 : 930) + i * 7 % 5;
    add_run(night, "gpt", {.metrics = {{.split = "run", .name = "throughput", .value = throughput}}});
  }
  write_pages();
  const Json suite = data("overview").at("suites").at(0);
  ASSERT_THAT(suite.at("changes"), SizeIs(1));
  const Json change = suite.at("changes").at(0);
  EXPECT_EQ(change.at("night"), first_slow);
  EXPECT_THAT(change.at("text").get<std::string>(), StartsWith("throughput of gpt fell 7."));
  const Json page = data("cases/" + suite.at("cases").at(0).at(0).dump());
  EXPECT_EQ(page.at("changes"), suite.at("changes"));
  EXPECT_THAT(page.at("metrics").at("run/throughput"), SizeIs(30));
}

TEST_F(SiteTest, ARunThatHasNotEndedHasNoPageYet) {
  const auto night = add_night(0, "a");
  const auto one = database_->add_case(night, {.name = "case", .config = "c.yaml", .state = CaseState::kRunning});
  const auto run = database_->begin_run(one, {.started_at = kFirstNight, .folder = "runs/1"});
  write_pages();
  EXPECT_FALSE(fs::exists(folder_ + "/report/data/runs/" + std::to_string(run) + ".js"));
  EXPECT_EQ(data("nights/" + std::to_string(night)).at("cases").at(0).at("runs").at(0).at("exit"), nullptr);
}

TEST_F(SiteTest, LinksEscapeTheCharactersOfAddresses) {
  write("runs/a b#1%/x.log", "");
  const site::RunFiles files{.database_folder = folder_, .site = folder_ + "/report"};
  EXPECT_EQ(files.link_to("runs/a b#1%/x.log"), "../runs/a%20b%231%25/x.log");
  EXPECT_EQ(files.link_to("runs/absent"), "");
}

TEST_F(SiteTest, AnExcerptIsTheEndOfALog) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += format_text("line %d\n", i);
  write("log", text + "10 %\r50 %\r100 %\nend without a line feed");
  const auto excerpt = site::read_excerpt(folder_ + "/log");
  EXPECT_THAT(excerpt.tail, AllOf(StartsWith("line 62\n"), HasSubstr("line 99\n100 %\nend without a line feed\n")));
  EXPECT_FALSE(excerpt.whole);
  write("long", std::string(100'000, 'x'));
  EXPECT_THAT(site::read_excerpt(folder_ + "/long").tail, SizeIs(site::kTailBytes));
  EXPECT_THAT(site::read_excerpt(folder_ + "/absent").tail, IsEmpty());
}

TEST(SiteData, NumbersThatAreNotFiniteAreNull) {
  EXPECT_EQ(site::rounded(1.0 / 3).dump(), "0.333333");
  EXPECT_EQ(site::rounded(NAN).dump(), "null");
}

}  // namespace
}  // namespace phalanx
