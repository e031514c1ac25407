// SPDX-License-Identifier: Apache-2.0
#include "tools/history/change_points.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tools/history/testing/planted.h"

namespace phalanx::history {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kLevel = 1000;

// Returns nights around kLevel, with this standard deviation relative to it.
std::vector<Night> noisy_nights(std::uint64_t seed, int count, double noise) {
  std::vector<Night> nights;
  for (int i = 0; i < count; ++i) {
    nights.push_back({.commit = planted_commit(i),
                      .values = {kLevel * (1 + noise * planted_noise(seed, static_cast<std::uint64_t>(i)))}});
  }
  return nights;
}

void multiply_from(std::vector<Night>& nights, int first, double factor) {
  for (std::size_t i = static_cast<std::size_t>(first); i < nights.size(); ++i) {
    for (auto& value : nights[i].values) value *= factor;
  }
}

// Returns in how many of `count` series without a change one is found.
int false_alarms(int count, double noise, const ChangeLimits& limits) {
  int found = 0;
  for (int seed = 0; seed < count; ++seed) {
    found += find_change_points(noisy_nights(static_cast<std::uint64_t>(seed), 30, noise), limits).empty() ? 0 : 1;
  }
  return found;
}

TEST(ChangePoints, AreNotFoundInNoise) {
  EXPECT_LE(false_alarms(1000, 0.02, {.false_alarms = 0.001, .least = 0}), 4);  // mean 1
  EXPECT_LE(false_alarms(400, 0.02, {.false_alarms = 0.05, .least = 0}), 33);   // mean 20, deviation 4.4
}

TEST(ChangePoints, AreNotFoundInNoiseWithOutliers) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto nights = noisy_nights(seed, 30, 0.02);
    for (std::size_t i = seed % 7; i < nights.size(); i += 7 + seed % 5) nights[i].values[0] *= 0.7;  // a busy machine
    found += find_change_points(nights, {.false_alarms = 0.05, .least = 0}).empty() ? 0 : 1;
  }
  EXPECT_LE(found, 33);
}

TEST(ChangePoints, NameTheCommitsBetweenWhichThroughputFellBy7Percent) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto nights = noisy_nights(seed, 30, 0.01);
    multiply_from(nights, 20, 0.93);
    const auto points = find_change_points(nights);
    ASSERT_EQ(points.size(), 1U) << seed;
    EXPECT_EQ(points[0].night, 20U) << seed;
    EXPECT_EQ(points[0].before, planted_commit(19));
    EXPECT_EQ(points[0].after, planted_commit(20));
    EXPECT_NEAR(points[0].relative(), -0.07, 0.015);
    EXPECT_LE(points[0].probability, 0.001);
  }
}

TEST(ChangePoints, NameTheCommitsBetweenWhichItFellBy5PercentFourNightsAgo) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto nights = noisy_nights(seed, 30, 0.01);
    multiply_from(nights, 26, 0.95);
    const auto points = find_change_points(nights);
    ASSERT_EQ(points.size(), 1U) << seed;
    EXPECT_EQ(points[0].night, 26U) << seed;
    EXPECT_NEAR(points[0].relative(), -0.05, 0.015);
  }
}

TEST(ChangePoints, AreAllFoundInASeriesWithSeveral) {
  auto nights = noisy_nights(1, 60, 0.01);
  multiply_from(nights, 20, 0.93);
  multiply_from(nights, 40, 1 / 0.93);
  const auto points = find_change_points(nights);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].night, 20U);
  EXPECT_EQ(points[1].night, 40U);
  EXPECT_LT(points[0].relative(), 0);
  EXPECT_GT(points[1].relative(), 0);
}

TEST(ChangePoints, AreFoundWhereALevelReturnsAfterAFewNights) {
  auto nights = noisy_nights(1, 60, 0.01);
  multiply_from(nights, 40, 0.93);
  multiply_from(nights, 46, 1 / 0.93);
  const auto points = find_change_points(nights);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].night, 40U);
  EXPECT_EQ(points[1].night, 46U);
}

TEST(ChangePoints, UseTheMedianOfANight) {
  auto nights = noisy_nights(1, 30, 0.01);
  for (auto& night : nights) night.values = {night.values[0], night.values[0], 1.0};
  EXPECT_THAT(find_change_points(nights), IsEmpty());
  for (std::size_t i = 20; i < nights.size(); ++i) nights[i].values = {900, nights[i].values[0] * 0.93, 1e6};
  EXPECT_EQ(find_change_points(nights).at(0).night, 20U);
}

TEST(ChangePoints, AreAtLeastAsLargeAsAsked) {
  auto nights = noisy_nights(1, 30, 0.001);
  multiply_from(nights, 20, 0.995);
  EXPECT_THAT(find_change_points(nights), IsEmpty());
  EXPECT_EQ(find_change_points(nights, {.least = 0.003}).size(), 1U);
}

TEST(ChangePoints, NeedThreeNightsOnEachSide) {
  EXPECT_THAT(find_change_points({}), IsEmpty());
  std::vector<Night> nights(5, Night{.commit = "a", .values = {1}});
  nights.back().values = {2};
  EXPECT_THAT(find_change_points(nights), IsEmpty());
}

TEST(ChangePoints, AreFoundInValuesWithoutNoise) {
  std::vector<Night> nights(30, Night{.commit = "a", .values = {0}});
  EXPECT_THAT(find_change_points(nights), IsEmpty());
  for (std::size_t i = 20; i < nights.size(); ++i) nights[i] = {.commit = "b", .values = {3}};
  const auto points = find_change_points(nights);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].night, 20U);
  EXPECT_TRUE(std::isinf(points[0].relative()));
}

TEST(ChangePoints, AreDescribedInASentence) {
  ChangePoint point{.night = 20,
                    .before = planted_commit(19),
                    .after = planted_commit(20),
                    .median_before = 1500,
                    .median_after = 1395,
                    .probability = 0.0005};
  EXPECT_EQ(
      describe("throughput of shakespeare_gpt_tp2", point),
      "throughput of shakespeare_gpt_tp2 fell 7.0 % between commits 10000013cccc and 10000014cccc (1500 to 1395)");
  point.after = point.before;
  EXPECT_THAT(describe("x", point), HasSubstr("x fell 7.0 % at commit 10000013cccc, without a change of the code"));
  point.median_before = 0;
  EXPECT_THAT(describe("x", point), HasSubstr("x rose at commit"));
}

}  // namespace
}  // namespace phalanx::history
