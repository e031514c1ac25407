// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace phalanx::bench_train {
namespace {

const Machine kMachine{.processor = "Fast CPU", .vectors = "AVX2", .matrix_peak = 61.25e9};

std::vector<Row> rows() {
  Row after{
      .workload = "lenet", .system = "phalanx", .ranks = 2, .samples_per_second = 20000, .p10 = 19000, .p90 = 21000};
  after.ratio = 1.75;
  after.ratio_to_limit = 0.985;
  after.operations = 3e6;
  after.of_peak = 0.375;
  Row overlapped = after, limit = after, peer = after;
  overlapped.system = "phalanx_overlapped";
  overlapped.hidden = {.of_communication = 0.857, .of_waiting = 0.921};
  limit.system = "no_communication";
  peer.system = "ddp";
  peer.ratio = std::nullopt;
  peer.of_peak = std::nullopt;
  return {after, overlapped, limit, peer};
}

TEST(Table, HasALineForEachRow) {
  const std::string text = to_table(rows(), kMachine, "ddp", /*markdown=*/false);
  EXPECT_NE(std::string::npos, text.find("of ddp"));
  EXPECT_NE(std::string::npos, text.find("lenet     phalanx                 20000"));
  EXPECT_NE(std::string::npos, text.find("1.750"));
  EXPECT_NE(std::string::npos, text.find("0.985"));
  EXPECT_EQ(std::string::npos, text.find("to loss"));
  EXPECT_NE(std::string::npos, text.find("lenet: overlapped hides 86 % of the communication, 92 % of its waiting"));
}

TEST(Table, NamesTheProcessorAndTheShareOfItsPeak) {
  const std::string text = to_table(rows(), kMachine, "ddp", /*markdown=*/false);
  EXPECT_EQ(0u, text.find("Fast CPU, AVX2: 61.2 GFLOP/s of matrix products on one core\n"));
  EXPECT_NE(std::string::npos, text.find("of peak"));
  EXPECT_NE(std::string::npos, text.find("0.375"));
}

TEST(Table, IsMarkdownOnRequest) {
  const std::string text = to_table(rows(), kMachine, "ddp", /*markdown=*/true);
  EXPECT_NE(std::string::npos, text.find("one core\n\n| workload | system "));
  EXPECT_NE(std::string::npos, text.find("|\n|---|---|---|---|---|---|---|---|---|\n| lenet "));
}

TEST(Table, ShowsTimesToALossIfTheyWereMeasured) {
  auto all = rows();
  all[0].seconds_to_loss = 12.34;
  all[0].steps_to_loss = 56;
  const std::string text = to_table(all, kMachine, "ddp", /*markdown=*/false);
  EXPECT_NE(std::string::npos, text.find("s to loss"));
  EXPECT_NE(std::string::npos, text.find("12.3"));
}

TEST(Json, HasTheFieldsOfARow) {
  const auto json = nlohmann::json::parse(to_json(rows(), kMachine, "ddp", "1gbit"));
  EXPECT_EQ("ddp", json["base"]);
  EXPECT_EQ("1gbit", json["link"]);
  ASSERT_EQ(4u, json["rows"].size());
  EXPECT_EQ("phalanx", json["rows"][0]["system"]);
  EXPECT_EQ(20000, json["rows"][0]["samples_per_second"]);
  EXPECT_EQ(1.75, json["rows"][0]["ratio"]);
  EXPECT_TRUE(json["rows"][3]["ratio"].is_null());
  EXPECT_EQ("Fast CPU", json["processor"]);
  EXPECT_EQ("AVX2", json["vectors"]);
  EXPECT_EQ(61.25e9, json["matrix_peak"]);
  EXPECT_EQ(3e6, json["rows"][0]["operations"]);
  EXPECT_EQ(0.375, json["rows"][0]["of_peak"]);
  EXPECT_TRUE(json["rows"][3]["of_peak"].is_null());
  EXPECT_TRUE(json["rows"][0]["backward_ms"].is_null());
  EXPECT_TRUE(json["rows"][0]["seconds_to_loss"].is_null());
  EXPECT_TRUE(json["rows"][0]["hidden"].is_null());
  EXPECT_EQ(0.857, json["rows"][1]["hidden"]);
  EXPECT_EQ(0.921, json["rows"][1]["hidden_of_waiting"]);
}

}  // namespace
}  // namespace phalanx::bench_train
