// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/capture.h"

#include <gtest/gtest.h>

namespace phalanx::doctor {
namespace {

using std::chrono::seconds;

TEST(Capture, ReturnsTheOutputOfAProgram) {
  const ProgramOutput ended = capture({"sh", "-c", "echo out; echo problem >&2; exit 3"}, seconds(30));
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(ended.output, "out\n");
  EXPECT_EQ(ended.errors, "problem\n");
  EXPECT_FALSE(ended.late);
}

TEST(Capture, ReturnsALotOfOutput) {
  EXPECT_EQ(capture({"sh", "-c", "head -c 1000000 /dev/zero"}, seconds(30)).output.size(), 1000000u);
}

TEST(Capture, KillsWhatTakesTooLongWithItsChildren) {
  const ProgramOutput ended = capture({"sh", "-c", "echo first; sleep 1000 & wait"}, seconds(1));
  EXPECT_TRUE(ended.late);
  EXPECT_EQ(ended.status, 128 + 9);
  EXPECT_EQ(ended.output, "first\n");
}

TEST(Capture, NamesAProgramThatDoesNotExist) {
  const ProgramOutput ended = capture({"/no/such/program"}, seconds(1));
  EXPECT_EQ(ended.status, 127);
  EXPECT_NE(ended.errors.find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace phalanx::doctor
