// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/watch/metrics_log.h"
#include "engine/watch/progress.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

MetricsRecord record() {
  return {.step = 20,
          .epoch = 0,
          .split = "train",
          .metrics = {{"loss", 0.5}, {"accuracy", 0.875}},
          .samples_per_second = 1000,
          .seconds = 2.5};
}

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

class ProgressTest : public ::testing::Test {
 protected:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  std::string written() const {
    std::string text(std::filesystem::file_size("/proc/self/fd/" + std::to_string(::fileno(file_.get()))), '\0');
    std::rewind(file_.get());
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

  static constexpr Progress::Total kTotal{.epochs = 5, .steps = 625, .steps_per_epoch = 125};
  const File file_{std::tmpfile()};
  Console console_{::fileno(file_.get())};
};

TEST_F(ProgressTest, PlainLinesIfTheOutputIsNoTerminal) {
  Progress progress(console_, false, kTotal);
  progress.update(record());
  EXPECT_EQ(written(), "epoch 1/5  step 20/625  loss 0.5000  accuracy 87.50 %  1000 samples/s  ETA 1:16\n");
}

TEST_F(ProgressTest, PlainLinesAreRare) {
  Progress progress(console_, false, kTotal);
  for (int i = 0; i < 1000; ++i) progress.update(record());
  EXPECT_THAT(written(), AllOf(StartsWith("epoch"), Not(HasSubstr("\nepoch"))));
}

TEST_F(ProgressTest, APlainLineWaitsAWhileForTheFirstMetrics) {
  auto unread = record();
  unread.metrics.clear();
  Progress progress(console_, false, kTotal);
  progress.update(unread);
  EXPECT_EQ(written(), "");
  unread.seconds = 6;
  progress.update(unread);
  EXPECT_THAT(written(), StartsWith("epoch 1/5  step 20/625  1000 samples/s  ETA "));
}

TEST_F(ProgressTest, PlainResultsAreLinesWithoutControlCharacters) {
  auto test = record();
  test.split = "test";
  test.epoch = 4;
  test.seconds = 3725.4;
  {
    Progress progress(console_, false, kTotal);
    progress.result(test);
    progress.result(test);
  }
  const std::string line = "epoch 5/5  step 20  test  loss 0.5000  accuracy 87.50 %  1000 samples/s  1:02:05\n";
  EXPECT_EQ(written(), line + line);
}

TEST_F(ProgressTest, AnUnknownRemainingTimeIsShownAsDashes) {
  Progress progress(console_, false, kTotal);
  auto nothing_yet = record();
  nothing_yet.step = 0;
  progress.update(nothing_yet);
  EXPECT_THAT(written(), EndsWith("ETA --:--\n"));
}

TEST_F(ProgressTest, ATerminalsLineIsRedrawnAndLeavesNothingBehind) {
  {
    Progress progress(console_, true, kTotal);
    progress.update(record());
  }
  EXPECT_THAT(written(), AllOf(StartsWith("\r\033[Kepoch 1/5 "), Not(HasSubstr("\n")), EndsWith("\r\033[K")));
}

TEST_F(ProgressTest, OnATerminalResultsStayAboveTheBar) {
  Progress progress(console_, true, kTotal);
  progress.update(record());
  progress.result(record());
  EXPECT_THAT(written(), AllOf(HasSubstr("\r\033[Kepoch 1/5  step 20  train  loss"), EndsWith("\n")));
}

TEST_F(ProgressTest, ATerminalThatShowsNothingIsNotCleared) {
  {
    Progress progress(console_, true, kTotal);
  }
  EXPECT_EQ(written(), "");
}

// Returns the output on a terminal of `columns` columns, without the leading "\r\033[K".
std::string shown_on_terminal(unsigned short columns, Progress::Total total,
                              const std::function<void(Progress&)>& show) {
  winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0) return "no terminal";
  std::string text(4096, '\0');
  {
    Console console(slave);
    Progress progress(console, true, total);
    show(progress);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(master, text.data(), text.size()))));
  }
  ::close(slave);
  ::close(master);
  const std::string start = "\r\033[K";
  return text.starts_with(start) ? text.substr(start.size()) : "not redrawn: " + text;
}

std::string drawn_on_terminal(unsigned short columns, const MetricsRecord& train, Progress::Total total) {
  return shown_on_terminal(columns, total, [&](Progress& progress) { progress.update(train); });
}

std::string result_on_terminal(unsigned short columns, const MetricsRecord& test, Progress::Total total) {
  return shown_on_terminal(columns, total, [&](Progress& progress) { progress.result(test); });
}

TEST_F(ProgressTest, ABarFillsFromLeftToRightWhereThereIsRoom) {
  auto train = record();
  train.step = 5 * 125 / 2;
  EXPECT_THAT(drawn_on_terminal(140, train, kTotal), HasSubstr(" ▕██████████████▉               ▏ step 312/625"));
  train.step = 625;
  EXPECT_THAT(drawn_on_terminal(140, train, kTotal), HasSubstr(" ▕██████████████████████████████▏ step 625/625"));
}

TEST_F(ProgressTest, AnOrdinaryTerminalHasRoomForABarTheLossAndTheTimeLeft) {
  EXPECT_THAT(drawn_on_terminal(80, record(), kTotal),
              AllOf(HasSubstr("▕"), HasSubstr("20/625"), HasSubstr("loss 0.5000"), HasSubstr("ETA 1:16")));
}

TEST_F(ProgressTest, ANarrowTerminalKeepsEpochAndStep) {
  auto train = record();
  train.step = 320;
  EXPECT_EQ(drawn_on_terminal(20, train, kTotal), "epoch 1/5  320/625");
}

TEST_F(ProgressTest, ATerminalOfAnyWidthShowsNoPartOfANumber) {
  auto train = record();
  train.step = 320;
  const std::vector<std::string> drawn{"", "320/625", "epoch 1/5  320/625"};
  for (unsigned short columns = 2; columns < 24; ++columns) {
    EXPECT_THAT(drawn, ::testing::Contains(drawn_on_terminal(columns, train, kTotal))) << columns;
  }
}

TEST_F(ProgressTest, AResultOn60ColumnsHasLossAndAccuracy) {
  auto test = record();
  test.split = "test";
  test.step = 125;
  EXPECT_EQ(result_on_terminal(60, test, kTotal), "epoch 1/5  step 125  test  loss 0.5000  accuracy 87.50 %\r\n");
  EXPECT_EQ(result_on_terminal(45, test, kTotal), "step 125  test  loss 0.5000  accuracy 87.50 %\r\n");
  EXPECT_EQ(result_on_terminal(40, test, kTotal), "test  loss 0.5000  accuracy 87.50 %\r\n");
}

TEST_F(ProgressTest, AResultSaysWhichVersionOfTheModelItIsOf) {
  auto test = record();
  test.split = "test";
  test.version = "final model";
  Progress progress(console_, false, kTotal);
  progress.result(test);
  EXPECT_THAT(written(), HasSubstr("  test (final model)  loss 0.5000"));
}

TEST_F(ProgressTest, MetricsThatDoNotFitAreCounted) {
  auto test = record();
  test.split = "test";
  test.metrics = {{"loss", 0.5}};
  for (int i = 0; i < 100; ++i) test.metrics.emplace_back("confusion_" + std::to_string(i), i);
  Progress progress(console_, false, kTotal);
  progress.result(test);
  const auto line = written();
  std::size_t shown = 1;  // the loss
  for (auto at = line.find("confusion_"); at != std::string::npos; at = line.find("confusion_", at + 1)) ++shown;
  EXPECT_THAT(line,
              AllOf(HasSubstr("test  loss 0.5000  confusion_0 0.0000"),
                    HasSubstr("  " + std::to_string(test.metrics.size() - shown) + " more  "), EndsWith("0:03\n")));
  EXPECT_LE(line.size(), 161u);
}

TEST_F(ProgressTest, TheFirstOfManyMetricsFitNextToABar) {
  auto train = record();
  for (int i = 0; i < 100; ++i) train.metrics.emplace_back("confusion_" + std::to_string(i), i);
  EXPECT_THAT(drawn_on_terminal(100, train, kTotal), AllOf(HasSubstr("▕"), HasSubstr("loss 0.5000  accuracy 87.50 %")));
}

TEST_F(ProgressTest, ColorsTakeNoRoom) {
  {
    Progress progress(console_, true, kTotal, true);
    progress.update(record());
  }
  EXPECT_THAT(written(), AllOf(HasSubstr("\033[36m"), HasSubstr("\033[1m0.5000\033[0m")));
  EXPECT_EQ(StyledText(true).add("▕█", StyledText::kCyan).columns(), 2);
  EXPECT_EQ(StyledText(false).add("▕█", StyledText::kCyan).bytes(), "▕█");
}

TEST_F(ProgressTest, ALineThatWrappedWhenTheTerminalShrankIsClearedCompletely) {
  winsize wide{.ws_row = 24, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0}, narrow = wide;
  narrow.ws_col = 40;
  int master = -1, slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, &wide), 0);
  {
    Console console(slave);
    Progress progress(console, true, kTotal);
    progress.update(record());
    ASSERT_EQ(::ioctl(slave, TIOCSWINSZ, &narrow), 0);
  }
  ::close(slave);
  std::string text;
  std::array<char, 4096> bytes{};
  for (ssize_t count; (count = ::read(master, bytes.data(), bytes.size())) > 0;) text.append(bytes.data(), count);
  ::close(master);
  EXPECT_THAT(text, EndsWith("\033[2A\r\033[J\r\033[K"))
      << "81 to 120 columns take three rows on the narrower terminal";
}

TEST_F(ProgressTest, TheLineNeverWrapsOnATerminalOfAnyWidth) {
  auto train = record();
  for (unsigned short columns = 2; columns < 160; ++columns) {
    const auto line = drawn_on_terminal(columns, train, kTotal);
    EXPECT_LT(columns_of(line), columns) << line;
  }
}

}  // namespace
}  // namespace phalanx
