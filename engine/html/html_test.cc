// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "engine/html/chart.h"
#include "engine/html/hang_timeline.h"
#include "engine/html/key_metrics.h"
#include "engine/html/metric_name.h"
#include "engine/html/page.h"
#include "engine/html/run_page.h"
#include "engine/html/run_record.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

TEST(Chart, TicksAreRound) {
  EXPECT_THAT(ticks(0, 1, 5),
              ElementsAre(DoubleEq(0), DoubleEq(0.2), DoubleEq(0.4), DoubleEq(0.6), DoubleEq(0.8), DoubleEq(1)));
  EXPECT_THAT(ticks(-3, 12, 4), ElementsAre(0, 5, 10));
  EXPECT_FALSE(std::signbit(ticks(-1e-12, 1, 4)[0])) << "no -0";
}

TEST(Chart, NearlyEqualValuesHaveAnAxisToo) {
  const double above = std::nextafter(0.7, 1.0);
  EXPECT_LE(ticks(0.7, above, 4).size(), 9u) << "the number of ticks is limited";
  EXPECT_LE(ticks(1e300, std::nextafter(1e300, 2e300), 4).size(), 9u);
  EXPECT_THAT(ticks(1, 1, 4), IsEmpty());
  const auto drawn = draw({.title = "t", .series = {{"a", {{1, 0.7}, {2, above}}}}});
  EXPECT_THAT(drawn, AllOf(HasSubstr(">0.7</text>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Chart, NumbersAreShort) {
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(1234.5), "1234");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(3.2e6), "3.2M");
  EXPECT_EQ(short_number(NAN), "none");
}

TEST(Chart, NonFiniteValuesAreGaps) {
  const auto drawn = draw({.title = "t", .series = {{"a", {{1, 1}, {2, 2}, {3, NAN}, {4, 1}, {5, 2}}}}});
  const auto path = drawn.substr(drawn.find("<path d=\""), 200);
  EXPECT_EQ(std::ranges::count(path.substr(0, path.find("/>")), 'M'), 2) << path;
  EXPECT_THAT(drawn, HasSubstr("[3.0,null,null]")) << "the data for the script has the gap too";
}

TEST(Chart, IsOmittedIfThereIsNothingToDraw) {
  EXPECT_THAT(draw({.title = "t", .series = {{"a", {}}}}), IsEmpty());
  EXPECT_THAT(draw({.title = "t", .series = {{"a", {{1, NAN}}}}}), IsEmpty());
}

TEST(Chart, StackedSeriesAddUpButAreShownAsTheyAre) {
  const auto drawn =
      draw({.title = "t", .series = {{"a", {{1, 1}, {2, 1}}}, {"b", {{1, 3}, {2, 2}}}}, .stacked = true});
  EXPECT_THAT(drawn, HasSubstr("{\"name\":\"b\",\"points\":[[1.0,4.0,3.0],[2.0,3.0,2.0]]}"));
}

TEST(Chart, StretchesWithFewerRanksAreShadedWithinTheCurves) {
  const Curve points{{0, 1}, {100, 2}};
  const auto drawn = draw({.title = "t", .series = {{"a", points}}, .stretches = {{50, 90, 3}, {90, INFINITY, 1}}});
  // The curves are 420 wide from 50 on.
  EXPECT_THAT(drawn, HasSubstr("<title>3 ranks from step 50 on</title><rect x=\"260.0\" y=\"12\" width=\"168.0\""));
  EXPECT_THAT(drawn, HasSubstr(">3 ranks</text>"));
  EXPECT_THAT(drawn, HasSubstr("<title>1 rank from step 90 on</title><rect x=\"428.0\" y=\"12\" width=\"42.0\""));
  EXPECT_THAT(drawn, AllOf(HasSubstr(">1</text>"), Not(HasSubstr(">1 rank</text>")))) << "there is no room for it";
  const auto before = draw({.title = "t", .series = {{"a", points}}, .stretches = {{100, INFINITY, 3}}});
  EXPECT_THAT(before, Not(HasSubstr("<rect"))) << "no step of the curve is in it";
}

TEST(Chart, KeepsThePeaksOfManyPoints) {
  Curve points;
  for (int i = 0; i < 100000; ++i) points.emplace_back(i, i == 54321 ? 9 : 1);
  const auto drawn = draw({.title = "t", .series = {{"a", points}}});
  EXPECT_THAT(drawn, HasSubstr("[54321.0,9.0,9.0]"));
  EXPECT_LT(drawn.size(), 40000u);
}

TEST(Chart, KeepsPeaksAndGapsAroundNonFiniteValuesOfManyPoints) {
  Curve points;
  for (int i = 0; i < 10000; ++i)
    points.emplace_back(i, i % 7 == 0 || i >= 5000 ? NAN : i == 4321 ? 9 : i == 4322 ? -9 : 1);
  const auto drawn = draw({.title = "t", .series = {{"a", points}}});
  EXPECT_THAT(drawn,
              AllOf(HasSubstr("[4321.0,9.0,9.0]"), HasSubstr("[4322.0,-9.0,-9.0]"), HasSubstr("[5000.0,null,null]")));
}

TEST(Chart, ReplacesInvalidUtf8) {
  EXPECT_THAT(draw({.title = "t", .series = {{"caf\xe9", {{1, 1}}}}}), HasSubstr("\"name\":\"caf\xef\xbf\xbd\""));
}

TEST(MetricName, HasTheNumbersOfListsAndMatrices) {
  EXPECT_THAT(parse_metric_name("recall[3]").index, ElementsAre(3));
  EXPECT_THAT(parse_metric_name("confusion[3][15]").index, ElementsAre(3, 15));
  EXPECT_EQ(parse_metric_name("confusion[3][15]").family, "confusion");
  for (const char* alone : {"loss", "a[b]", "[3]", "a[3][4][5]", "a[99999999999999999999]"}) {
    EXPECT_EQ(parse_metric_name(alone).family, alone);
    EXPECT_THAT(parse_metric_name(alone).index, IsEmpty());
  }
  EXPECT_THAT(scalar_metrics({"loss", "recall[0]", "accuracy"}), ElementsAre("loss", "accuracy"));
}

TEST(Chart, NamesCannotBreakOutOfThePage) {
  const auto drawn = draw({.title = "<t>", .series = {{"</script><b>", {{1, 1}}}, {"<!--<script>", {{1, 2}}}}});
  EXPECT_THAT(drawn,
              AllOf(HasSubstr("&lt;t&gt;"), HasSubstr("\\u003c/script>\\u003cb>"), Not(HasSubstr("</script><b>"))));
  EXPECT_THAT(drawn, AllOf(HasSubstr("\\u003c!--\\u003cscript>"), Not(HasSubstr("<!--"))));
}

// Returns the picture of ranks of which all but the last one wait for `wait` seconds in operation 5.
JobPicture standing_job(int size, double wait) {
  JobPicture job{.size = size, .taken = 1000};
  for (int rank = 0; rank < size; ++rank) {
    RankPicture picture{.rank = rank, .host = "vm", .process = 100 + rank, .state = RankPicture::Process::kRuns};
    picture.activity = rank + 1 < size ? "update" : "loading data";
    picture.activity_since = job.taken - wait - 0.01;
    for (std::uint64_t i = 1; i <= (rank + 1 < size ? 5U : 4U); ++i) {
      const double start = job.taken - wait - 0.1 * (5.0 - static_cast<double>(i));
      picture.operations.push_back({.number = i,
                                    .sequence = i,
                                    .group = "world",
                                    .op = i % 2 == 1 ? "all_reduce" : "broadcast",
                                    .call = "all_reduce(sum) of 7 Float",
                                    .state = i == 5 ? "running" : "done",
                                    .launched = start,
                                    .started = start,
                                    .finished = i == 5 ? 0 : start + 0.05});
    }
    job.ranks.push_back(std::move(picture));
  }
  return job;
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(HangTimeline, MarksWhoWaitsAndWhoHasNotCome) {
  const auto page = to_hang(standing_job(3, 20));
  EXPECT_THAT(page, HasSubstr("<p class=\"note\">ranks 0, 1 have waited 20 s in all_reduce #5 of world"));
  EXPECT_EQ(count_of("<g class=\"row", page), 3U);
  EXPECT_EQ(count_of("<g class=\"s1\"><title>all_reduce #5 of world: all_reduce(sum) of 7 Float, 20 s</title>", page),
            2U);
  EXPECT_THAT(page, AllOf(HasSubstr("<g class=\"row awaited\"><text"), HasSubstr(">rank 2</text>"),
                          HasSubstr("<g class=\"s4\"><title>loading data</title>"), HasSubstr(">loading data</text>"),
                          HasSubstr("</i>has not come</span>"), HasSubstr("</i>broadcast</span>")));
  EXPECT_EQ(count_of("<rect", page), 4U * 3 + 2 + 1) << "operations before, operations that wait, and the absence";
}

TEST(HangTimeline, BreaksTheAxisIfTheWaitIsMuchLonger) {
  const auto broken = to_hang(standing_job(3, 20)), whole = to_hang(standing_job(3, 1.2));
  EXPECT_THAT(broken, AllOf(HasSubstr("class=\"break\""), HasSubstr(">+20 s</text>"), HasSubstr("−0.4 s</text>")));
  EXPECT_THAT(whole, AllOf(Not(HasSubstr("class=\"break\"")), HasSubstr(">+1 s</text>")));
}

TEST(HangTimeline, MarksTheOperationInWhichRanksDiffer) {
  auto job = standing_job(3, 20);
  job.ranks[2] = job.ranks[1];
  job.ranks[2].rank = 2;
  job.ranks[2].operations.back().call = "barrier<x>";
  const auto page = to_hang(job);
  EXPECT_EQ(count_of("<g class=\"s1 differs\">", page), 3U);
  EXPECT_THAT(page, AllOf(HasSubstr("all_reduce #5: barrier&lt;x&gt;</text>"), Not(HasSubstr("has not come"))));
}

TEST(HangTimeline, DrawsTheAbsentFirstIfThereAreTooManyRanks) {
  auto job = standing_job(500, 20);
  job.ranks.pop_back();
  const auto page = to_hang(job);
  EXPECT_EQ(count_of("<g class=\"row", page), 32U);
  EXPECT_THAT(page, AllOf(HasSubstr(">rank 499</text>"), HasSubstr("nothing is known of it"),
                          HasSubstr("468 more ranks are not drawn"), Not(HasSubstr(">rank 40</text>"))));
}

TEST(HangTimeline, DrawsPicturesWithoutAnyTime) {
  for (const double never : {0.0, 1e300}) {
    const JobPicture nothing{
        .size = 2, .taken = never, .ranks = {{.rank = 1, .operations = {{.op = "send", .started = never}}}}};
    EXPECT_THAT(to_hang(nothing), AllOf(HasSubstr(">rank 0</text>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
}

class RunPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_.path());
    std::filesystem::create_directories(folder_.path());
  }

  void write(const std::string& path, const std::string& text) const { std::ofstream(path) << text; }

  void write_metrics(const std::string& more = "") const {
    write(folder_.metrics(),
          R"({"step":1,"epoch":0,"split":"train","loss":2.0,"samples_per_second":100.0,"seconds":1.0,)"
          R"("learning_rate":0.5,"step_ms":{"data":1.0,"forward":2.0}})"
          "\n"
          R"({"step":2,"epoch":0,"split":"test","loss":null,"recall":0.5,"samples_per_second":50.0,"seconds":2.0})"
          "\n" +
              more);
  }

  const RunFolder folder_{::testing::TempDir() + "/page"};
};

TEST_F(RunPageTest, ARecordHasCurvesByName) {
  write_metrics();
  const auto run = read_run(folder_);
  EXPECT_THAT(run.metrics, ElementsAre("loss", "recall"));
  EXPECT_THAT(run.curves.at("train/loss"), ElementsAre(std::pair(1.0, 2.0)));
  EXPECT_TRUE(std::isnan(run.curves.at("test/loss")[0].second));
  EXPECT_THAT(run.curves.at("train/learning_rate"), ElementsAre(std::pair(1.0, 0.5)));
  EXPECT_THAT(run.phases.at("forward"), ElementsAre(std::pair(1.0, 2.0)));
  EXPECT_FALSE(run.summary.has_value());
}

TEST_F(RunPageTest, IgnoresAnIncompleteLastLine) {
  write_metrics(R"({"step":3,"ep)");
  EXPECT_EQ(read_run(folder_).curves.at("train/loss").size(), 1u);
}

TEST_F(RunPageTest, RefusesWhatIsNotARun) {
  const auto read = [this] { read_run(folder_); };
  EXPECT_THAT(read, ThrowsMessage<DataError>(HasSubstr("is not a run folder: it has no metrics.jsonl")));
  write_metrics("{\"step\":3}\n");
  EXPECT_THAT(read, ThrowsMessage<DataError>(HasSubstr("metrics.jsonl:3: is not a line of metrics: ")));
  write_metrics();
  for (const char* other : {"{", "[1]", R"({"steps": "many"})", R"({"step_time": {"steps": 1}})",
                            R"({"step_time": []})", R"({"provenance": {"host": 7}})"}) {
    write(folder_.summary(), other);
    EXPECT_THAT(read, ThrowsMessage<DataError>(HasSubstr("summary.json: is not a run summary: "))) << other;
  }
  EXPECT_THAT([] { read_run(RunFolder("/absent")); },
              ThrowsMessage<DataError>(StartsWith("/absent: there is no such")));
}

TEST_F(RunPageTest, ShowsWhatAnUnfinishedRunHasSoFar) {
  write_metrics();
  write_run_page(folder_);
  const auto page = read_file(folder_.report());
  EXPECT_THAT(page, AllOf(StartsWith("<!doctype html>"), HasSubstr("has not finished"), HasSubstr("recall"),
                          Not(HasSubstr("Where the time of a step goes"))));
}

TEST_F(RunPageTest, ARunThatStandsStillNeedsNoMetrics) {
  std::filesystem::create_directories(folder_.logs());
  write(folder_.logs() + "/hang.json", to_json(standing_job(2, 20), ""));
  EXPECT_THAT(to_run_page(read_run(folder_)),
              AllOf(HasSubstr("has not finished"), HasSubstr("<h2>Why it stands still</h2>"),
                    HasSubstr("rank 0 has waited 20 s in all_reduce #5 of world")));
  write_metrics();
  const auto over = HasSubstr("<h2>Why it stood still at 1970-01-01 00:16 UTC</h2>");
  EXPECT_THAT(to_run_page(read_run(folder_)), over) << "there are newer metrics";
  const std::filesystem::file_time_type earlier(std::chrono::file_clock::from_sys(std::chrono::sys_seconds()));
  std::filesystem::last_write_time(folder_.metrics(), earlier);
  EXPECT_THAT(to_run_page(read_run(folder_)), HasSubstr("<h2>Why it stands still</h2>"));
  write(folder_.summary(), R"({"name":"a","ranks":2})");
  EXPECT_THAT(to_run_page(read_run(folder_)), over);
  write(folder_.logs() + "/hang.json", "{");
  EXPECT_THAT([this] { read_run(folder_); }, ThrowsMessage<DataError>(HasSubstr("hang.json: ")));
}

TEST_F(RunPageTest, AConfusionMatrixIsATableAndNotAChart) {
  write_metrics(
      R"({"step":8,"epoch":0,"split":"train","confusion[0][0]":77.0})"
      "\n"
      R"({"step":9,"epoch":0,"split":"test","confusion[0][0]":30.0,"confusion[0][1]":10.0,"confusion[1][0]":0.0,)"
      R"("confusion[1][1]":5.0})"
      "\n");
  const auto page = to_run_page(read_run(folder_));
  EXPECT_THAT(page, AllOf(HasSubstr("<h3>confusion · test, step 9</h3>"),
                          HasSubstr("<tr><th>0</th><td style=\"--share:0.750\">30</td>"
                                    "<td style=\"--share:0.250\">10</td></tr>"),
                          HasSubstr("<tr><th>1</th><td style=\"--share:0.000\"></td>"
                                    "<td style=\"--share:1.000\">5</td></tr>"),
                          Not(HasSubstr("confusion[0]")), Not(HasSubstr(">77<"))));
}

TEST_F(RunPageTest, AMatrixOfVeryManyClassesIsNotShown) {
  write_metrics("{\"step\":9,\"epoch\":0,\"split\":\"test\",\"confusion[999999][0]\":1}\n");
  EXPECT_THAT(to_run_page(read_run(folder_)), HasSubstr("confusion: 1000000 classes are too many for a table"));
}

TEST_F(RunPageTest, LongListsOfMetricsAreFolded) {
  std::string list = R"({"step":9,"epoch":0,"split":"test","loss":1.0)";
  for (int i = 0; i < 30; ++i) list += ",\"recall[" + std::to_string(i) + "]\":0.5,\"m" + std::to_string(i) + "\":0.25";
  write_metrics(list + "}\n");
  const auto page = to_run_page(read_run(folder_));
  EXPECT_THAT(page, AllOf(HasSubstr("<summary>recall: 30 metrics</summary>"),
                          HasSubstr("<tr><th>recall[29]</th><td>0.5</td></tr>"), Not(HasSubstr("<figcaption>recall[")),
                          HasSubstr("<summary>20 more metrics</summary>"),
                          HasSubstr("<tr><th>m29</th><td>0.25</td></tr>"), Not(HasSubstr("<figcaption>m29<"))));
}

TEST_F(RunPageTest, TheHeadingDescribesTheRunAndItsResult) {
  write_metrics(R"({"step":9,"epoch":0,"split":"test","loss":0.5,"accuracy":0.975})"
                "\n");
  write(folder_.config(), "model:\n  name: lenet\ndataset: digits\nstrategy:\n  name: auto\n");
  EXPECT_THAT(to_run_page(read_run(folder_)), HasSubstr("<p class=\"subject\">lenet on digits · strategy auto</p>"));
  write(folder_.summary(), R"({"name":"a","ranks":2,"strategy":{"name":"sharded"}})");
  EXPECT_THAT(to_run_page(read_run(folder_)), Not(HasSubstr("What the strategy counted")));
  const auto page = to_run_page(read_run(folder_));
  EXPECT_THAT(page, HasSubstr("<p class=\"subject\">lenet on digits · strategy sharded · 2 ranks</p>\n"
                              "<p class=\"result\">test loss 0.5, recall 0.5, accuracy 97.50 %</p>"));
}

TEST_F(RunPageTest, ListsWhatTheStrategyCounted) {
  write_metrics();
  write(folder_.summary(), R"({"name":"a","ranks":2,"strategy":{"name":"ssp","pulls":9,"pulls_at_staleness_2":4}})");
  EXPECT_THAT(to_run_page(read_run(folder_)),
              AllOf(HasSubstr("What the strategy counted"), HasSubstr("pulls at staleness 2")));
}

TEST_F(RunPageTest, ShowsTheShareOfTheMatrixPeak) {
  write_metrics();
  write(folder_.summary(), R"({"name":"a","ranks":2,"matrix_products":{"share_of_peak":0.414}})");
  EXPECT_THAT(to_run_page(read_run(folder_)), AllOf(HasSubstr("of matrix peak"), HasSubstr("41 %")));
  write(folder_.summary(), R"({"name":"a","ranks":2,"matrix_products":null})");
  EXPECT_THAT(to_run_page(read_run(folder_)), Not(HasSubstr("of matrix peak")));
}

TEST_F(RunPageTest, ShadesTheStepsAfterRanksWereLost) {
  std::string lines;
  for (int step = 3; step <= 20; ++step) {
    lines += R"({"step":)" + std::to_string(step) +
             R"(,"epoch":0,"split":"train","loss":1.0,"learning_rate":0.5})"
             "\n";
  }
  write_metrics(lines);
  EXPECT_THAT(to_run_page(read_run(folder_)), Not(HasSubstr("class=\"stretch\"")));
  // Two ranks are lost at once, and the last one when nobody is left who goes on.
  write(folder_.summary(), R"({"name":"a","ranks":1,"lost_ranks":[{"rank":0,"step":5},{"rank":2,"step":9},)"
                           R"({"rank":3,"step":9},{"rank":4,"step":-1}]})");
  const auto run = read_run(folder_);
  const auto& stretches = run.summary->stretches;
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_THAT(std::tuple(stretches[0].from, stretches[0].to, stretches[0].ranks), std::tuple(5, 9, 4));
  EXPECT_THAT(std::tuple(stretches[1].from, stretches[1].to, stretches[1].ranks), std::tuple(9, INFINITY, 2));
  const auto page = to_run_page(run);
  EXPECT_THAT(page, AllOf(HasSubstr("4 ranks from step 5 on"), HasSubstr("2 ranks from step 9 on")));
}

TEST_F(RunPageTest, ShadesNoStepsAfterLostRanksWereReplaced) {
  write_metrics();
  const auto stretches_of = [this](const std::string& losses) {
    write(folder_.summary(), R"({"name":"a",)" + losses + "}");
    std::vector<std::tuple<double, double, int>> all;
    const auto run = read_run(folder_);
    for (const auto& [from, to, ranks] : run.summary->stretches) all.emplace_back(from, to, ranks);
    return all;
  };
  using Stretches = std::vector<std::tuple<double, double, int>>;
  EXPECT_EQ(
      stretches_of(R"("ranks":3,"lost_ranks":[{"rank":1,"step":5},{"rank":0,"step":12}],)"
                   R"("returned_ranks":[{"rank":3,"in_place_of":1,"step":9},{"rank":4,"in_place_of":0,"step":12}])"),
      (Stretches{{5, 9, 2}}));
  // A host has joined with two ranks, one of which was lost.
  EXPECT_EQ(stretches_of(R"("ranks":3,"lost_ranks":[{"rank":3,"step":9}],"returned_ranks":[)"
                         R"({"rank":2,"in_place_of":null,"step":5},{"rank":3,"in_place_of":null,"step":5}])"),
            (Stretches{{5, 9, 4}, {9, INFINITY, 3}}));
}

TEST_F(RunPageTest, HasConfigSummaryAndStraggler) {
  write_metrics();
  write(folder_.config(), "name: <x>\n");
  const std::string spread = R"({"mean_ms":3.0,"least_ms":2.0,"least_rank":0,"most_ms":4.0,"most_rank":1})";
  write(folder_.summary(),
        R"({"name":"a & b","ranks":2,"steps":1234,"samples_per_second":5678.9,"train_seconds":3700.0,)"
        R"("restarts":2,"lost_ranks":[{"rank":0},{"rank":2},{"rank":3}],"lost_seconds":61,)"
        R"("stopped":true,"step_time":{"steps":9,"phases":{"forward":)" +
            spread + R"(},"own_work":)" + spread + R"(,"whole":)" + spread +
            R"(,"straggler":"rank 1 is the straggler"},"provenance":{"host":"node7"}})");
  const auto page = to_run_page(read_run(folder_));
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>a &amp; b</h1>"), HasSubstr("was stopped early"), HasSubstr("<dd>1 234</dd>"),
                          HasSubstr("1 h 01 min"), HasSubstr("<dt>restarts</dt><dd>2</dd>"),
                          HasSubstr("<dt>lost ranks</dt><dd>3</dd>"), HasSubstr("<dt>time lost</dt><dd>1 min"),
                          HasSubstr("4.00 ms · rank 1"), HasSubstr("class=\"note\">rank 1 is the straggler.")));
  EXPECT_THAT(page, AllOf(HasSubstr("node7"), HasSubstr("name: &lt;x&gt;")));
}

}  // namespace
}  // namespace phalanx
