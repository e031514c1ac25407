// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/plot.h"

#include <gtest/gtest.h>

#include <regex>

namespace phalanx::bench {
namespace {

Row row(const std::string& op, const std::string& backend, const std::string& memory, std::int64_t bytes) {
  Row row;
  row.op = op;
  row.backend = backend;
  row.algorithm = "native";
  row.memory = memory;
  row.ranks = 2;
  row.bytes = bytes;
  row.p50_us = row.p90_us = 1 + static_cast<double>(bytes) / 1000;
  row.alg_gb_s = row.bus_gb_s = op == "launch" ? 0 : static_cast<double>(bytes) / row.p50_us / 1000;
  return row;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Checks that elements are nested correctly and attributes are quoted.
void expect_well_formed(const std::string& svg) {
  const std::regex tag(R"(<(/?)(\w+)((?: +[\w:-]+="[^"<]*")*) *(/?)>)");
  std::vector<std::string> open;
  std::string rest = std::regex_replace(svg, tag, "");
  EXPECT_EQ(rest.find_first_of("<>"), std::string::npos) << rest;
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    const auto& match = *it;
    if (match[4] == "/") continue;
    if (match[1] != "/") open.push_back(match[2]);
    if (match[1] != "/") continue;
    ASSERT_FALSE(open.empty()) << match.str();
    EXPECT_EQ(open.back(), match[2]);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Plot, HasALineForEachBackendAndMemoryInBothPanels) {
  Result result;
  for (const char* backend : {"shm", "openmpi"}) {
    for (const char* memory : {"registered", "private"}) {
      for (const std::int64_t bytes : {1024, 65536, 1 << 20}) {
        result.rows.push_back(row("all_reduce", backend, memory, bytes));
      }
    }
  }
  const std::string svg = to_svg(result);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<polyline"), 2u * 4);
  EXPECT_EQ(count(svg, "<circle"), 2u * 4 * 3);
  EXPECT_EQ(count(svg, ">openmpi, private</text>"), 1u);
  EXPECT_EQ(count(svg, ">64 KB</text>"), 2u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Plot, OmitsWhatCannotBeDrawn) {
  Result result;
  result.rows = {row("launch", "shm", "private", 1024), row("barrier", "shm", "private", 0)};
  const std::string svg = to_svg(result);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<polyline"), 1u);  // the time of a launch
  EXPECT_EQ(count(svg, "barrier"), 0u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Plot, IsWellFormedWithoutRows) { expect_well_formed(to_svg({})); }

TEST(Plot, DrawsLinesInOrderOfSize) {
  Result result;
  result.rows = {row("all_reduce", "shm", "private", 1 << 20), row("all_reduce", "shm", "private", 1024)};
  const std::string svg = to_svg(result);
  std::smatch points;
  ASSERT_TRUE(std::regex_search(svg, points, std::regex(R"(points="([\d.]+),[\d.]+ ([\d.]+),)")));
  EXPECT_LT(std::stod(points[1]), std::stod(points[2]));
}

}  // namespace
}  // namespace phalanx::bench
