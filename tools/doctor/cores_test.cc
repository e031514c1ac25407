// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cores.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/doctor/machine.h"

namespace phalanx::doctor {
namespace {

TEST(Cores, AreMeasuredFromTheFirstOneAndSortedByDistance) {
  const auto before = allowed_cores();
  const auto links = measure_cores(3);
  EXPECT_EQ(links.size(), std::min<std::size_t>(3, before.size() - 1));
  for (std::size_t i = 0; i < links.size(); ++i) {
    EXPECT_GT(links[i].round_trip_ns, 1);
    EXPECT_NE(links[i].first, links[i].second);
    EXPECT_EQ(links[i].first, links[0].first);
    EXPECT_GE(links[i].round_trip_ns, links[i > 0 ? i - 1 : 0].round_trip_ns);
  }
  EXPECT_EQ(allowed_cores(), before) << "this thread may run on the same cores as before";
}

TEST(Cores, CopyMemory) { EXPECT_GT(measure_copy_gb_s(), 0); }

}  // namespace
}  // namespace phalanx::doctor
