// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/record_exception.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ps/server_lost.h"
#include "launch/exit_status.h"
#include "launch/failure/failure.h"

namespace phalanx {
namespace {

struct Left {
  int status;
  std::vector<Failure> failures;
};

template <class Exception>
Left leave(const Exception& exception) {
  const std::string folder = ::testing::TempDir();
  const int status = record_exception(std::make_exception_ptr(exception), 5, folder, "the.log");
  return {status, take_failures(folder)};
}

TEST(RecordException, ReportsWhoFailedAndWhy) {
  const Left left = leave(DataError("file is short"));
  EXPECT_EQ(left.status, kFailed);
  ASSERT_EQ(left.failures.size(), 1u);
  EXPECT_EQ(left.failures[0].rank, 5);
  EXPECT_EQ(left.failures[0].status, kFailed);
  EXPECT_EQ(left.failures[0].log, "the.log");
  EXPECT_EQ(left.failures[0].message, "file is short");
  EXPECT_FALSE(left.failures[0].secondary);
  EXPECT_NEAR(left.failures[0].time, failure_time(), 10);
}

TEST(RecordException, AConfigErrorIsAUsageError) { EXPECT_EQ(leave(ConfigError("no such key")).status, kUsage); }

TEST(RecordException, ALostServerIsADeath) {
  const Left left = leave(ps::ServerLost("the server has gone"));
  EXPECT_EQ(left.status, kRankDied);
  EXPECT_FALSE(left.failures.at(0).secondary);
}

TEST(RecordException, AnUnmetExpectationHasAStatusOfItsOwn) {
  const Left left = leave(ExpectationError("expect.test.loss.max: wanted <= 1, got 2"));
  EXPECT_EQ(left.status, kExpectationFailed);
  EXPECT_EQ(left.failures.at(0).message, "expect.test.loss.max: wanted <= 1, got 2");
  EXPECT_FALSE(left.failures.at(0).secondary);
}

TEST(RecordException, EchoOfAnotherRanksFailureIsSecondary) {
  const Left lost = leave(CommError(CommError::Kind::kPeerLost, "rank 1 is gone"));
  EXPECT_EQ(lost.status, kFailed);
  EXPECT_TRUE(lost.failures.at(0).secondary);
  const Left mismatch = leave(CommError(CommError::Kind::kMismatch, "not the same"));
  EXPECT_FALSE(mismatch.failures.at(0).secondary);
}

TEST(RecordException, AnythingThrownIsAFailure) { EXPECT_EQ(leave(1).failures.size(), 1u); }

}  // namespace
}  // namespace phalanx
