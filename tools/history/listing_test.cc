// SPDX-License-Identifier: Apache-2.0
#include "tools/history/listing.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "framework/base/error.h"

namespace phalanx::history {
namespace {

using Json = nlohmann::ordered_json;

Json some_records() {
  return Json::array({{{"case", "a, b"}, {"commit", std::string(40, 'f')}, {"throughput", 1234.56789}, {"status", 0}},
                      {{"case", "say \"c\""}, {"commit", "abc"}, {"throughput", nullptr}, {"status", nullptr}}});
}

TEST(Listing, IsATableForPeople) {
  EXPECT_EQ(to_listing(some_records(), Format::kTable, "nothing"),
            "case            commit   throughput   status\n"
            "a, b      ffffffffffff      1234.57        0\n"
            "say \"c\"            abc\n");
}

TEST(Listing, IsCsvWithQuotesWhereTheyAreNeeded) {
  EXPECT_EQ(to_listing(some_records(), Format::kCsv, "nothing"),
            "case,commit,throughput,status\n"
            "\"a, b\"," +
                std::string(40, 'f') +
                ",1234.56789,0\n"
                "\"say \"\"c\"\"\",abc,,\n");
}

TEST(Listing, IsJson) { EXPECT_EQ(Json::parse(to_listing(some_records(), Format::kJson, "nothing")), some_records()); }

TEST(Listing, OfNothingSaysSoInATable) {
  EXPECT_EQ(to_listing(Json::array(), Format::kTable, "no runs"), "no runs\n");
  EXPECT_EQ(to_listing(Json::array(), Format::kCsv, "no runs"), "");
  EXPECT_EQ(to_listing(Json::array(), Format::kJson, "no runs"), "[]\n");
}

TEST(Listing, OfRunsHasAKeyForEachMetric) {
  StoredRun run;
  run.session.session.started_at = 1767232800;
  run.metrics = {0.97, std::nullopt};
  const Json record = to_records({run}, {{"test", "accuracy"}, {"run", "throughput"}}).at(0);
  EXPECT_EQ(record.at("night"), "2026-01-01T02:00:00Z");
  EXPECT_EQ(record.at("test.accuracy"), 0.97);
  EXPECT_TRUE(record.at("throughput").is_null());
  EXPECT_TRUE(record.at("exit_status").is_null());
}

TEST(Listing, HasThreeFormats) {
  EXPECT_EQ(parse_format("csv"), Format::kCsv);
  EXPECT_THROW(parse_format("xml"), ConfigError);
}

}  // namespace
}  // namespace phalanx::history
