// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/error.h"
#include "tools/dashboard/job_json.h"
#include "tools/dashboard/served_files.h"
#include "tools/live/job_state.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(JobJson, IsOneLineWithWhatThePageShows) {
  JobState job{.source = "runs/a", .name = "digits", .ranks = 2, .step = 5, .planned_steps = 10};
  job.samples_per_second = 100;
  job.metrics = {{"train/loss", NAN}};
  job.times = {.steps = 1, .ranks = {{0, 1, 1, 0, 0, 0}, {0, 2, 2, 0, 0, 0}}};
  job.measured_at = 100;
  job.notes = {"rank 0 has waited\n\"20 s\""};
  const std::string text = to_json({job}, 103);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto json = nlohmann::json::parse(text).at(0);
  EXPECT_EQ(json.at("folder"), "runs/a");
  EXPECT_EQ(json.at("steps"), 10);
  EXPECT_EQ(json.at("age"), 3.0);
  EXPECT_EQ(json.at("metrics"), nlohmann::json::parse(R"([["train/loss", null]])"));
  EXPECT_EQ(json.at("ranks").at(1).at("own_work"), 4.0);
  EXPECT_THAT(json.at("straggler").get<std::string>(), StartsWith("rank 1 is the straggler"));
  EXPECT_EQ(to_json({}, 0), "[]");
}

class ServedFilesTest : public ::testing::Test {
 protected:
  ServedFilesTest() {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/nightly/report/data");
    fs::create_directories(root_ + "/nightly/runs/1");
    for (const char* path : {"secret", "nightly/results.sqlite", "nightly/report/data/overview.js",
                             "nightly/runs/1/x.log", "nightly/report/index.html", "nightly/runs/1/index.html"}) {
      std::ofstream(root_ + "/" + path) << "<body>" << path;
    }
  }
  ~ServedFilesTest() override { fs::remove_all(root_); }

  int status(const std::string& path) { return ServedFiles(root_ + "/nightly").answer(path).status; }

  std::string root_ = ::testing::TempDir() + "/served_files_test";
};

TEST_F(ServedFilesTest, PagesAndRunFoldersAreServed) {
  const ServedFiles files(root_ + "/nightly");
  EXPECT_EQ(files.answer("/report/data/overview.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(files.answer("/runs/1/x.log").body, "<body>nightly/runs/1/x.log");
  EXPECT_EQ(files.answer("/").location, "/report/index.html");
}

TEST_F(ServedFilesTest, OnlyTheFirstPageGetsTheAddressOfTheEvents) {
  const ServedFiles files(root_ + "/nightly");
  EXPECT_THAT(files.answer("/report/index.html").body, StartsWith("<body data-events=\"/events\">"));
  EXPECT_THAT(files.answer("/runs/1/index.html").body, StartsWith("<body>"));
}

TEST_F(ServedFilesTest, NothingElseIsServed) {
  fs::create_symlink(root_ + "/secret", root_ + "/nightly/runs/1/link");
  for (const char* path : {"/results.sqlite", "/report/../results.sqlite", "/report/../../secret", "/runs/1/link",
                           "/runs", "/runs/1", "/absent", "/reports/x", "//etc/passwd", ""}) {
    EXPECT_EQ(status(path), 404) << path;
  }
}

TEST_F(ServedFilesTest, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(ServedFiles(root_ + "/absent"), DataError); }

}  // namespace
}  // namespace phalanx
