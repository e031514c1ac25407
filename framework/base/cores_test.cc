// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <thread>

namespace phalanx {
namespace {

TEST(Cores, APinnedThreadMayUseNoOtherCore) {
  const auto before = allowed_cores();
  ASSERT_FALSE(before.empty());
  for (const int core : before) {
    std::thread([core] {
      EXPECT_TRUE(stay_on_cores({core}));
      EXPECT_EQ(allowed_cores(), std::vector<int>{core});
      EXPECT_EQ(usable_cores(), 1);
      EXPECT_EQ(::sched_getcpu(), core);
    }).join();
  }
  EXPECT_EQ(usable_cores(), static_cast<int>(before.size()));
  EXPECT_EQ(allowed_cores(), before) << "this thread is left where it was";
}

TEST(Cores, BelongToANode) {
  const std::string system = ::testing::TempDir() + "system";
  std::filesystem::create_directories(system + "/devices/system/cpu/cpu5/node12");
  EXPECT_EQ(numa_node(5, system), 12);
  EXPECT_EQ(numa_node(6, system), 0) << "the kernel does not tell";
  for (const int core : allowed_cores()) EXPECT_GE(numa_node(core), 0);
}

TEST(Cores, RefuseACoreThatDoesNotExist) { EXPECT_FALSE(stay_on_cores({CPU_SETSIZE - 1})); }

}  // namespace
}  // namespace phalanx
