// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/locality.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include "framework/base/environment.h"

namespace phalanx {
namespace {

TEST(HostKey, IsTheSameForAllOfThisHost) {
  ::unsetenv("PHALANX_HOST_KEY");
  EXPECT_EQ(host_key(), host_key());
  EXPECT_TRUE(host_key().starts_with(host_name() + ' ')) << host_key();
  EXPECT_NE(host_key().find("net:["), std::string::npos) << host_key();
}

TEST(HostKey, CanBeSetByTheUser) {
  ::setenv("PHALANX_HOST_KEY", "rack 7", 1);
  EXPECT_EQ(host_key(), "rack 7");
  ::unsetenv("PHALANX_HOST_KEY");
}

TEST(ProcessIdsKey, DiffersBetweenPidNamespacesWhateverTheUserSays) {
  const auto key = process_ids_key();
  EXPECT_NE(key.find("pid:["), std::string::npos) << key;
  EXPECT_EQ(key.find(' '), std::string::npos) << key;
  ::setenv("PHALANX_HOST_KEY", "rack 7", 1);
  EXPECT_EQ(process_ids_key(), key);
  ::unsetenv("PHALANX_HOST_KEY");
}

// A thread that is bound to one core is bound to that core's node.
TEST(NumaKey, IsANumberWhereTheThreadIsBound) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const std::string key = numa_key();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_FALSE(key.empty());
  EXPECT_EQ(key.find_first_not_of("0123456789"), std::string::npos) << key;
}

}  // namespace
}  // namespace phalanx
