// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/results/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/temporary_folder.h"
#include "tools/regress/results/failure_text.h"

namespace phalanx::regress {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MetricsLines losses(const std::vector<double>& values) {
  MetricsLines lines;
  for (std::size_t i = 0; i < values.size(); ++i) {
    lines[{"train", static_cast<std::int64_t>(i) + 1}].metrics["loss"] = values[i];
  }
  return lines;
}

TEST(CompareLosses, MeetsItsToleranceOrNamesTheWorstStep) {
  EXPECT_TRUE(compare_losses(losses({1, 2}), losses({1, 2}), 0, 0).met);
  const auto result = compare_losses(losses({1, 2, 3}), losses({1, 2.02, 3.003}), 1e-3, 0);
  EXPECT_FALSE(result.met);
  EXPECT_THAT(result.got, HasSubstr("at step 2: 2 and 2.02"));
  EXPECT_NEAR(*result.value, 0.0099, 1e-4);
  EXPECT_TRUE(compare_losses(losses({1, 2, 3}), losses({1, 2.02, 3.003}), 1e-2, 0).met);
}

TEST(CompareLosses, ComparesOnlyTheFirstStepsIfAskedTo) {
  EXPECT_TRUE(compare_losses(losses({1, 2, 3}), losses({1, 2, 4}), 0, 2).met);
  EXPECT_TRUE(compare_losses(losses({1, 2, 3}), losses({1, 2}), 0, 2).met);
}

TEST(CompareLosses, IsNotMetWithoutTheSameStepsOrWithNaN) {
  EXPECT_FALSE(compare_losses({}, {}, 1, 0).met);
  EXPECT_FALSE(compare_losses(losses({1, 2}), losses({1}), 1, 0).met);
  EXPECT_FALSE(compare_losses(losses({1}), losses({1, 2}), 1, 0).met);
  EXPECT_FALSE(compare_losses(losses({1, NAN}), losses({1, 2}), 1, 0).met);
}

class RunFolders : public ::testing::Test {
 protected:
  std::string make(const std::string& name, const std::string& metrics, const std::string& weights) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directory(path);
    write_atomically(path + "/metrics.jsonl", metrics);
    const std::string header = "{\"from\":\"" + name + "\"}";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    write_atomically(path + "/weights.safetensors", file + header + weights);
    return path;
  }

  TemporaryFolder folder_;
};

constexpr const char* kOne = R"({"step":1,"epoch":0,"split":"train","loss":2.0,"seconds":0.5})"
                             "\n";
constexpr const char* kTwo = R"({"step":2,"epoch":1,"split":"train","loss":1.0,"seconds":0.7,"step_ms":{"forward":1}})"
                             "\n";
constexpr const char* kTwoLater = R"({"step":2,"epoch":1,"split":"train","loss":1.0,"seconds":9})"
                                  "\n";
constexpr const char* kTwoOther = R"({"step":2,"epoch":1,"split":"train","loss":1.25,"seconds":0.7})"
                                  "\n";

TEST_F(RunFolders, AResumedRunMustHaveTheSameMetricsAndWeights) {
  const auto whole = make("whole", std::string(kOne) + kTwo, "abc");
  EXPECT_TRUE(compare_resumed(whole, make("same", kTwoLater, "abc"), 1).met);
  EXPECT_THAT(compare_resumed(whole, make("loss", kTwoOther, "abc"), 1).got,
              HasSubstr("train line of step 2: loss is 1.25 instead of 1"));
  EXPECT_THAT(compare_resumed(whole, make("short", kOne, "abc"), 1).got, HasSubstr("has no train line of step 2"));
  const auto result = compare_resumed(whole, make("weights", kTwoLater, "abd"), 1);
  EXPECT_FALSE(result.met);
  EXPECT_EQ(result.got, "the weights at the end differ");
}

TEST_F(RunFolders, ResultsAreReadFromTheSummaryAndFromTheLastLineOfEachEpoch) {
  const auto path = make("run", std::string(kOne) + kTwo + R"({"step":3)", "");
  write_atomically(path + "/summary.json",
                   R"({"throughput":1000.5,"steps":2,"train_seconds":3,"peak_memory":[7,9],"traffic":null,)"
                   R"("test":{"loss":null,"accuracy":0.5},"expectations":[)"
                   R"({"key":"test.accuracy.min","wanted":">= 0.9","got":"0.5","value":0.5,"met":false}]})");
  const auto result = read_result(path);
  EXPECT_EQ(value_of(result, {"run", "throughput"}), 1000.5);
  EXPECT_EQ(value_of(result, {"run", "peak_memory"}), 9);
  EXPECT_EQ(value_of(result, {"test", "accuracy"}), 0.5);
  EXPECT_TRUE(std::isnan(value_of(result, {"test", "loss"})));
  EXPECT_TRUE(std::isnan(value_of(result, {"test", "recall"})));
  std::vector<double> by_epoch;
  for (const auto& metric : result.metrics) {
    if (metric.split == "train" && metric.epoch >= 0) by_epoch.push_back(metric.value);
  }
  EXPECT_THAT(by_epoch, ElementsAre(2, 1));
  EXPECT_THAT(unmet_lines(result.expectations), ElementsAre("test.accuracy.min: wanted >= 0.9, got 0.5"));
}

TEST_F(RunFolders, ARunWithoutASummaryHasNoResults) {
  EXPECT_THAT(read_result(make("run", kOne, "")).metrics, IsEmpty());
}

TEST_F(RunFolders, AMalformedSummaryIsAnErrorThatNamesIt) {
  const auto path = make("run", kOne, "");
  write_atomically(path + "/summary.json", "{");
  EXPECT_THAT([&] { read_result(path); }, ::testing::ThrowsMessage<DataError>(HasSubstr("summary.json")));
}

TEST(Scaling, IsTheThroughputRelativeToThatOfAsManyRanksOfOne) {
  EXPECT_TRUE(check_scaling(150, 2, 100, 0.75).met);
  EXPECT_FALSE(check_scaling(149, 2, 100, 0.75).met);
  EXPECT_FALSE(check_scaling(NAN, 2, 100, 0.75).met);
}

TEST(Throughput, IsComparedWithTheMedianOfEarlierNights) {
  EXPECT_TRUE(check_median(95, {100, 1000, 90}, 0.95, 7).met);
  EXPECT_FALSE(check_median(94, {100, 1000, 90}, 0.95, 7).met);
  EXPECT_TRUE(check_median(1, {100, 100}, 0.95, 7).met) << "two nights have no median";
  EXPECT_FALSE(check_median(1, {100}, 0.95, 1).met) << "unless no more are asked for";
}

TEST(FailureText, IsTheFramedReportOrTheLastLine) {
  EXPECT_EQ(
      reason_in("noise\n┌─ Rank 1 of 2 on vm failed ──\n│ It was killed by signal 9\n│ (SIGKILL).\n│\n│ Log: x\n└──\n"),
      "It was killed by signal 9 (SIGKILL).");
  EXPECT_EQ(reason_in("first\nlast\x1b[2J \n\n"), "last\\x1b[2J");
  EXPECT_EQ(reason_in(""), "");
  EXPECT_EQ(reason_in(std::string(1000, 'x')).size(), 500u);
}

}  // namespace
}  // namespace phalanx::regress
