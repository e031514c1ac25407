// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace phalanx {
namespace {

TEST(Catches, SignalsWithAHandler) {
  EXPECT_FALSE(catches(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, [](int) {});
  EXPECT_TRUE(catches(::getpid(), SIGUSR2));
  EXPECT_FALSE(catches(::getpid(), SIGUSR1));
  ::signal(SIGUSR2, SIG_IGN);
  EXPECT_FALSE(catches(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_DFL);
  EXPECT_FALSE(catches(::getpid(), SIGUSR2));
}

TEST(Catches, NothingWithoutAProcess) { EXPECT_FALSE(catches(1 << 30, SIGINT)); }

}  // namespace
}  // namespace phalanx
