// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/busy_time.h"

#include <gtest/gtest.h>

#include <ctime>

namespace phalanx::bench_train {
namespace {

double own_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(BusyTime, CountsWhatThisProcessComputes) {
  const double before = busy_seconds(), start = own_seconds();
  volatile double sum = 0;
  while (own_seconds() - start < 0.3) sum = sum + 1;
  EXPECT_GE(busy_seconds() - before, 0.1) << "others may add to it; a hypervisor's time may be counted elsewhere";
}

}  // namespace
}  // namespace phalanx::bench_train
