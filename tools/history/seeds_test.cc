// SPDX-License-Identifier: Apache-2.0
#include "tools/history/seeds.h"

#include <gmock/gmock.h>

namespace phalanx::history {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Series series_of(const std::string& name, const MetricName& metric, std::vector<std::vector<double>> nights) {
  Series series{.case_name = name, .metric = metric, .hardware = "cpu", .cores = 2};
  for (auto& values : nights) {
    const auto session = static_cast<std::int64_t>(series.nights.size()) + 1;
    series.nights.push_back({.commit = "c", .values = std::move(values), .session = session});
  }
  return series;
}

TEST(Seeds, AreAveragedNightByNight) {
  const MetricName loss{"test", "loss"};
  const auto all = average_over_seeds({series_of("a-seed=1-x", loss, {{1}, {2, 9, 3}}), series_of("b", loss, {{5}}),
                                       series_of("a-seed=2-x", loss, {{3}, {5}, {7}})});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].case_name, "a-x over 2 seeds");
  ASSERT_THAT(all[0].nights, SizeIs(2)) << "the third night has only one of the seeds";
  EXPECT_THAT(all[0].nights[0].values, ElementsAre(2));
  EXPECT_THAT(all[0].nights[1].values, ElementsAre(4)) << "the median of a night counts";
  EXPECT_EQ(all[1].case_name, "b");
}

TEST(Seeds, AreNotAveragedForSpeedOrAlone) {
  const auto all = average_over_seeds({series_of("a-seed=1", {"run", "throughput"}, {{1}}),
                                       series_of("a-seed=2", {"run", "throughput"}, {{1}}),
                                       series_of("b-seed=1", {"test", "loss"}, {{1}})});
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[2].case_name, "b-seed=1");
}

}  // namespace
}  // namespace phalanx::history
