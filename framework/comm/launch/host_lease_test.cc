// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/host_lease.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace phalanx {
namespace {

using std::chrono::seconds;

TEST(HostLease, HoldsUntilItsEnd) {
  std::chrono::nanoseconds now = seconds(10);
  HostLease lease(2, seconds(15), [&] { return now; });
  EXPECT_TRUE(lease.holds());
  now = seconds(15);
  EXPECT_FALSE(lease.holds());
  lease.set_end(seconds(16));
  EXPECT_TRUE(lease.holds());
}

TEST(HostLease, IsSharedWithProcessesThatAreForkedLater) {
  HostLease lease(3, boot_time() + seconds(60));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto deadline = boot_time() + seconds(30);
    while (!lease.has_ended(2) && boot_time() < deadline) ::usleep(1000);
    ::_exit(lease.has_ended(2) && !lease.has_ended(1) && !lease.holds() ? 0 : 1);
  }
  lease.set_end(boot_time());
  lease.declare_ended(2);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(HostLease, IgnoresRanksThatTheJobDoesNotHave) {
  HostLease lease(1, seconds(1));
  for (const int rank : {-1, 1}) {
    lease.declare_ended(rank);
    EXPECT_FALSE(lease.has_ended(rank));
  }
}

TEST(HostLease, EndsAProcessOnlyWhenItIsOver) {
  end_without_lease();  // this process has no lease
  EXPECT_FALSE(is_known_to_have_ended(0));
  set_lease_of_process(std::make_shared<HostLease>(1, boot_time() + seconds(60)));
  end_without_lease();
  EXPECT_FALSE(is_known_to_have_ended(0));
  EXPECT_FALSE(lease_is_over());
  const auto without = [] {
    set_lease_of_process(std::make_shared<HostLease>(1, boot_time()));
    if (lease_is_over()) end_without_lease();
  };
  EXPECT_EXIT(without(), ::testing::KilledBySignal(SIGKILL), "");
  set_lease_of_process(nullptr);
}

TEST(BootTime, GoesOn) {
  const auto before = boot_time();
  ::usleep(2000);
  EXPECT_GE(boot_time() - before, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace phalanx
