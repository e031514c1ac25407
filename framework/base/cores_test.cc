#include "framework/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace phalanx {
namespace {

TEST(Cores, AThreadThatStaysOnOneMayUseNoOther) {
  const auto before = allowed_cores();
  ASSERT_FALSE(before.empty());
  for (const int core : before) {
    std::thread([core] {
      EXPECT_TRUE(stay_on_core(core));
      EXPECT_EQ(allowed_cores(), std::vector<int>{core});
      EXPECT_EQ(::sched_getcpu(), core);
    }).join();
  }
  EXPECT_EQ(allowed_cores(), before) << "this thread is left where it was";
}

TEST(Cores, OneThatIsNotThereIsRefused) { EXPECT_FALSE(stay_on_core(CPU_SETSIZE - 1)); }

}  // namespace
}  // namespace phalanx
