#include "tools/doctor/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

namespace phalanx::doctor {
namespace {

TEST(Cores, AreMeasuredFromTheFirstToOthersNearestFirst) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  const auto links = measure_cores(3);
  EXPECT_EQ(links.size(), static_cast<std::size_t>(std::min(3, CPU_COUNT(&before) - 1)));
  for (std::size_t i = 0; i < links.size(); ++i) {
    EXPECT_GT(links[i].round_trip_ns, 1);
    EXPECT_NE(links[i].first, links[i].second);
    EXPECT_EQ(links[i].first, links[0].first);
    EXPECT_GE(links[i].round_trip_ns, links[i > 0 ? i - 1 : 0].round_trip_ns);
  }
  ASSERT_EQ(::sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "this thread is left where it was";
}

TEST(Cores, Copy) { EXPECT_GT(measure_copy_gb_s(), 0); }

}  // namespace
}  // namespace phalanx::doctor
