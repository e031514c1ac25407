// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/norm_outliers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Norms that fall slowly and vary by 20 % from step to step, differently on each rank.
std::vector<double> usual_norms(int ranks, int step) {
  std::vector<double> norms;
  for (int rank = 0; rank < ranks; ++rank)
    norms.push_back(5 * std::exp(-0.005 * step) * (1 + 0.2 * std::sin(7 * step + 3 * rank)));
  return norms;
}

NormOutliers after_steps(int ranks, int steps) {
  NormOutliers outliers(ranks, 10);
  for (int step = 0; step < steps; ++step) EXPECT_THAT(outliers.add(usual_norms(ranks, step)), IsEmpty()) << step;
  return outliers;
}

TEST(NormOutliers, FindsTheRankWhoseNormIsUnlikeOthers) {
  for (const int ranks : {1, 2, 3, 8}) {
    NormOutliers outliers = after_steps(ranks, 150);
    auto norms = usual_norms(ranks, 150);
    norms.back() *= 1e6;
    const auto found = outliers.add(norms);
    ASSERT_THAT(found, SizeIs(1)) << ranks << " ranks";
    EXPECT_EQ(found[0].rank, ranks - 1);
    EXPECT_GT(found[0].score, 10);
    EXPECT_EQ(found[0].norm, norms.back());
    EXPECT_NEAR(found[0].usual, usual_norms(ranks, 100).back(), 2);
    EXPECT_THAT(outliers.add(usual_norms(ranks, 151)), IsEmpty()) << "a single wrong value does not move medians";
  }
}

TEST(NormOutliers, FindsARankThatIsNotFiniteAtOnce) {
  NormOutliers outliers(3, 10);
  const auto found = outliers.add({1, kNan, 1});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_THAT(outliers.add({kNan, 1, kNan}), IsEmpty())
      << "most ranks are not finite, as when a loss scale is too large";
}

TEST(NormOutliers, ToleratesJumpsOfAllRanks) {
  NormOutliers outliers = after_steps(4, 100);
  auto norms = usual_norms(4, 100);
  for (auto& norm : norms) norm *= 1000;
  EXPECT_THAT(outliers.add(norms), IsEmpty());
}

TEST(NormOutliers, ToleratesARankThatAlwaysDiffers) {
  NormOutliers outliers(4, 10);
  for (int step = 0; step < 200; ++step) {
    auto norms = usual_norms(4, step);
    norms[2] *= 50;
    EXPECT_THAT(outliers.add(norms), IsEmpty()) << step;
  }
}

TEST(NormOutliers, JudgesNothingWithoutAHistory) {
  NormOutliers outliers(2, 10);
  for (std::size_t step = 0; step + 1 < NormOutliers::kEnough; ++step) {
    EXPECT_THAT(outliers.add({1, step % 2 == 0 ? 1 : 1e9}), IsEmpty());
  }
}

}  // namespace
}  // namespace phalanx
