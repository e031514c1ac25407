// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/metrics/metrics_log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/observe/testing/metrics_record.h"

namespace phalanx {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::record;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class MetricsLogTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }

  std::vector<std::string> lines() const {
    std::istringstream text(read_file(path_));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }

  const std::string path_ = ::testing::TempDir() + "/metrics.jsonl";
};

TEST_F(MetricsLogTest, ALineHasThePromisedKeysInOrder) {
  MetricsLog(path_).add(record());
  EXPECT_EQ(read_file(path_), R"({"step":20,"epoch":0,"split":"train","loss":0.5,"accuracy":0.875,)"
                              R"("samples_per_second":1000.0,"seconds":2.5})"
                              "\n");
}

TEST_F(MetricsLogTest, ALineOfTrainingHasLearningRateAndTimes) {
  auto train = record();
  train.learning_rate = 0.25;
  train.times = StepTimes{.steps = 1, .ranks = {{0.001, 0.002, 0.003, 0.004, 0.005, 0.006}}};
  MetricsLog(path_).add(train);
  EXPECT_THAT(lines()[0], EndsWith(R"("seconds":2.5,"learning_rate":0.25,"step_ms":{"data":1.0,"forward":2.0,)"
                                   R"("backward":3.0,"communication":4.0,"update":5.0,"hooks":6.0}})"));
}

TEST_F(MetricsLogTest, LinesAreThereAsSoonAsTheyAreAdded) {
  MetricsLog log(path_);
  log.add(record());
  EXPECT_THAT(lines(), SizeIs(1));
  log.add(record());
  EXPECT_THAT(lines(), SizeIs(2));
}

TEST_F(MetricsLogTest, AppendsToAnExistingFile) {
  MetricsLog(path_).add(record());
  MetricsLog(path_).add(record());
  EXPECT_THAT(lines(), SizeIs(2));
}

TEST_F(MetricsLogTest, LinesThatAFullDiskRefusedAreWrittenWhenItHasRoomAgain) {
  MetricsLog log(path_);
  log.add(record());
  const auto whole = read_file(path_);
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);  // writes beyond a limit then fail like writes to a full disk
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlim_t before = std::exchange(limit.rlim_cur, whole.size() + 10);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THAT([&] { log.add(record()); }, ThrowsMessage<DataError>(HasSubstr(path_ + ": cannot be written")));
  EXPECT_EQ(read_file(path_), whole) << "no part of a line is left";
  EXPECT_THROW(log.add(record()), DataError);
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, previous);
  log.add(record());
  EXPECT_THAT(lines(), SizeIs(4));
}

TEST_F(MetricsLogTest, LinesFollowAFileThatIsRenamedAndSaySo) {
  MetricsLog log(path_);
  log.add(record());
  const auto renamed = path_ + ".renamed";
  std::filesystem::rename(path_, renamed);
  EXPECT_THAT([&] { log.add(record()); }, ThrowsMessage<DataError>(HasSubstr(path_ + ": was removed or renamed")));
  std::ofstream(path_) << "of another run";
  EXPECT_THROW(log.add(record()), DataError);
  EXPECT_EQ(read_file(path_), "of another run");
  std::filesystem::rename(renamed, path_);
  log.add(record());
  EXPECT_THAT(lines(), SizeIs(4));
}

TEST_F(MetricsLogTest, AFileThatIsRemovedIsAnError) {
  MetricsLog log(path_);
  std::filesystem::remove(path_);
  EXPECT_THAT([&] { log.add(record()); }, ThrowsMessage<DataError>(HasSubstr(path_ + ": was removed or renamed")));
}

TEST_F(MetricsLogTest, EveryLineParsesEvenOfARunThatDiverged) {
  auto diverged = record();
  diverged.metrics = {{"loss", NAN}, {"accuracy", INFINITY}};
  diverged.split = "a \"quoted\"\nname";
  MetricsLog(path_).add(diverged);
  ASSERT_THAT(lines(), SizeIs(1));
  const auto line = nlohmann::json::parse(lines()[0]);
  EXPECT_TRUE(line.at("loss").is_null());
  EXPECT_EQ(line.at("split"), diverged.split);
}

TEST_F(MetricsLogTest, AFullDiskIsAnErrorThatNamesTheFile) {
  MetricsLog log("/dev/full");
  EXPECT_THAT([&] { log.add(record()); },
              ThrowsMessage<DataError>("/dev/full: cannot be written: No space left on device"));
}

TEST_F(MetricsLogTest, AFileThatCannotBeCreatedIsAnErrorThatNamesIt) {
  EXPECT_THAT([] { MetricsLog("/proc/absent/metrics.jsonl"); },
              ThrowsMessage<DataError>("/proc/absent/metrics.jsonl: cannot be opened: No such file or directory"));
}

}  // namespace
}  // namespace phalanx
