// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/end_after_failure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/store/store.h"
#include "launch/exit_status.h"
#include "launch/local/rank_threads.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// Two ranks, of which rank 1 never arrives at the barrier. Rank 0 waits for it for 0.3 s.
void wait_for_a_rank_that_hangs() {
  EndAfterFailure end(milliseconds(100));
  const auto store = make_hash_store(Seconds(10));
  run_rank_threads(2, [&](const RankInfo& rank_info) {
    const auto world = Backends::Choice("inproc").make({rank_info, store, Seconds(0.3), false});
    while (rank_info.rank == 1) ::pause();
    try {
      world->barrier().wait();
    } catch (const CommError& error) {
      end.failed(error.kind() == CommError::Kind::kTimeout ? kFailed : kUsage);
    }
  });
}

TEST(EndAfterFailure, AHangingThreadDoesNotKeepTheJobAlive) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_for_a_rank_that_hangs(), ::testing::ExitedWithCode(kFailed), "");
}

TEST(EndAfterFailure, LetsTheOthersEndByThemselves) {
  {
    EndAfterFailure end(milliseconds(60'000));
    end.failed(kFailed);
  }
  SUCCEED() << "its end does not wait for the countdown";
}

TEST(EndAfterFailure, DoesNothingWithoutAFailure) { const EndAfterFailure end(milliseconds(1)); }

}  // namespace
}  // namespace phalanx
