// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/memory_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "framework/base/files.h"

namespace phalanx {
namespace {

TEST(MemoryFile, MayBeOneMoreThanTheSoftLimitOfOpenFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(STDERR_FILENO);
  ASSERT_GE(lowest_free, 0);
  ::close(lowest_free);
  const rlimit full{.rlim_cur = static_cast<rlim_t>(lowest_free), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  EXPECT_EQ(::dup(STDERR_FILENO), -1);
  {
    const MemoryFile one("one"), other("other");
    EXPECT_EQ(read_file(one.path()), "one");
    EXPECT_EQ(read_file(other.path()), "other");
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace phalanx
