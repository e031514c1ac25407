// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/run_folder.h"
#include "framework/base/error.h"
#include "framework/base/http/http_server.h"
#include "framework/observe/metrics/exposition.h"
#include "launch/failure/failure.h"
#include "launch/stall/stall.h"
#include "tools/live/job_state.h"
#include "tools/live/prometheus_text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

Exposition exposition() {
  Exposition run{.run = "digits", .ranks = 2, .planned_steps = 1000};
  run.add({.step = 300,
           .epoch = 1,
           .split = "train",
           .metrics = {{"loss", 0.5}},
           .samples_per_second = 1234,
           .seconds = 2.5,
           .learning_rate = 0.1,
           .times = StepTimes{.steps = 20, .ranks = {{0, 0.002, 0.003, 0.004, 0, 0}, {0, 0.004, 0.006, 0, 0, 0}}}});
  return run;
}

TEST(PrometheusText, SamplesHaveNamesLabelsAndValues) {
  const auto samples =
      parse_prometheus_text("# HELP a text\na 1\n\nb{x=\"1\",y=\"a \\\"q\\\"\\\\\\n,}\"} -2.5e-3 1700\nc NaN\n", "it");
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples[0].name, "a");
  EXPECT_EQ(samples[1].label("y"), "a \"q\"\\\n,}");
  EXPECT_EQ(samples[1].value, -2.5e-3);
  EXPECT_TRUE(std::isnan(samples[2].value));
}

TEST(PrometheusText, AMalformedLineIsNamed) {
  for (const char* line : {"a", "a x", "{} 1", "a{x=\"1} 1", "a{x=\"1\" 1", "a{x} 1", "a 1x"}) {
    EXPECT_THAT([&] { parse_prometheus_text("a 1\n" + std::string(line) + "\n", "it"); },
                ThrowsMessage<DataError>("it:2: is not a line of metrics"))
        << line;
  }
}

TEST(JobState, HasEverythingThatARunExposes) {
  const auto state = parse_job_state(to_text(exposition()), "it");
  EXPECT_EQ(state.name, "digits");
  EXPECT_EQ(state.ranks, 2);
  EXPECT_EQ(state.step, 300);
  EXPECT_EQ(state.planned_steps, 1000);
  EXPECT_EQ(state.epoch, 1);
  EXPECT_EQ(state.samples_per_second, 1234);
  EXPECT_EQ(state.learning_rate, 0.1);
  EXPECT_GT(state.measured_at, 0);
  EXPECT_THAT(state.metrics, ElementsAre(std::pair<std::string, double>("train/loss", 0.5)));
  EXPECT_EQ(state.times.ranks[1][2], 0.006);
  EXPECT_THAT(state.times.straggler(), StartsWith("rank 1 is the straggler"));
}

TEST(JobState, MetricsOfAnotherProgramAreAnError) {
  EXPECT_THAT([] { parse_job_state("up 1\n", "it"); },
              ThrowsMessage<DataError>("it: has no metrics of a run of Phalanx"));
}

TEST(JobState, RanksThatDoNotExistAreIgnored) {
  const auto state = parse_job_state(
      "phalanx_run_info{name=\"a\",ranks=\"1\"} 1\nphalanx_step_seconds{phase=\"data\",rank=\"1000000000\"} 1\n", "it");
  EXPECT_THAT(state.times.ranks, IsEmpty());
}

TEST(JobState, IsReadFromAnEndpoint) {
  const HttpServer server("127.0.0.1", 0, [](const HttpRequest& request) {
    return request.path == "/metrics" ? HttpResponse{.body = to_text(exposition())} : HttpResponse{.status = 404};
  });
  const std::string host = "http://127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(fetch_job_state(host).step, 300);
  EXPECT_EQ(fetch_job_state(host + "/metrics").step, 300);
  EXPECT_THAT([&] { fetch_job_state(host + "/other"); }, ThrowsMessage<Error>(HasSubstr("404")));
}

class RunStateTest : public ::testing::Test {
 protected:
  RunStateTest() {
    fs::remove_all(root_);
    folder_ = RunFolder::create(root_ + "/run");
  }
  ~RunStateTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  std::string root_ = ::testing::TempDir() + "/run_state_test";
  RunFolder folder_;
};

TEST_F(RunStateTest, ARunThatIsHeldTrains) {
  auto claim = folder_.claim();
  EXPECT_TRUE(is_held(folder_.path()));
  auto run = exposition();
  run.measured_at = 1;  // long ago
  write(folder_.live(), to_text(run));
  EXPECT_EQ(read_job_state(folder_.path()).phase, JobPhase::kTraining);
  EXPECT_THAT(find_live_runs(root_), ElementsAre(folder_.path()));
  claim.reset();
  EXPECT_FALSE(is_held(folder_.path()));
  EXPECT_EQ(read_job_state(folder_.path()).phase, JobPhase::kDied);
}

TEST_F(RunStateTest, LookingAtARunDoesNotKeepItFromStarting) {
  EXPECT_FALSE(is_held(folder_.path()));
  EXPECT_NO_THROW((void)folder_.claim());
}

TEST_F(RunStateTest, RanksThatWaitAndFailAreNamed) {
  write(folder_.live(), to_text(exposition()));
  write(folder_.log(0), "");
  write(folder_.log(1), "");
  write_wait_note(folder_.logs(),
                  {.rank = 0, .operation = "all_reduce #7 of world", .since = failure_time() - 30, .reported = true});
  write_failure(folder_.logs(), {.rank = 1, .message = "no memory\nmore"});
  EXPECT_THAT(read_job_state(folder_.path()).notes,
              ElementsAre(AllOf(StartsWith("rank 0 has waited 3"), HasSubstr("in all_reduce #7 of world for rank 1")),
                          "rank 1 has failed: no memory"));
}

TEST_F(RunStateTest, ARunThatHasEndedHasItsResult) {
  write(folder_.summary(), R"({"name": "digits", "ranks": 2, "steps": 900, "samples_per_second": 50})");
  const auto state = read_job_state(folder_.path());
  EXPECT_EQ(state.phase, JobPhase::kEnded);
  EXPECT_EQ(state.step, 900);
}

TEST_F(RunStateTest, AFolderWithoutARunIsAnErrorThatSaysWhatIsMissing) {
  EXPECT_THAT([&] { read_job_state(root_ + "/absent"); },
              ThrowsMessage<DataError>(HasSubstr("there is no such folder")));
  EXPECT_THAT([&] { read_job_state(folder_.path()); }, ThrowsMessage<DataError>(HasSubstr("is not a run folder")));
  write(folder_.config(), "seed: 1\n");
  EXPECT_THAT([&] { read_job_state(folder_.path()); },
              ThrowsMessage<DataError>(HasSubstr("has ended without a result")));
  const auto claim = folder_.claim();
  EXPECT_THAT([&] { read_job_state(folder_.path()); }, ThrowsMessage<DataError>(HasSubstr("has measured nothing yet")));
}

}  // namespace
}  // namespace phalanx
