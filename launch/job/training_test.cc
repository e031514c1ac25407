// SPDX-License-Identifier: Apache-2.0
#include "launch/job/training.h"

#include <gmock/gmock.h>

#include <string>

#include "framework/base/console.h"
#include "launch/exit_status.h"
#include "launch/rank/connect.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

struct Told {
  int status;
  std::string text;
};

Told told_by(const ExperimentResult& result) {
  const ExperimentContext context{
      .world = connect("inproc", {}, Seconds(5)), .splits = {}, .folder = RunFolder("runs/x")};
  ::testing::internal::CaptureStdout();
  const int status = tell_end(result, context);
  standard_output().flush();
  return {status, ::testing::internal::GetCapturedStdout()};
}

TEST(TellEnd, AFinishedRunIsDone) {
  const Told told = told_by({.steps = 120});
  EXPECT_EQ(told.status, kDone);
  EXPECT_EQ(told.text, "Done after step 120; everything is in runs/x\n");
}

TEST(TellEnd, AStoppedRunTellsHowToResumeIt) {
  const Told told = told_by({.steps = 7, .stopped = true});
  EXPECT_EQ(told.status, kInterrupted);
  EXPECT_THAT(told.text, HasSubstr("Stopped after step 7"));
  EXPECT_THAT(told.text, HasSubstr("--run_dir=runs/x --resume=auto"));
}

TEST(TellEnd, ARunWhoseTimeIsUpCanBeResumedToo) {
  const Told told = told_by({.steps = 7, .stopped = true, .time_up = true});
  EXPECT_EQ(told.status, kTimeUp);
  EXPECT_THAT(told.text, HasSubstr("Time limit reached after step 7"));
  EXPECT_THAT(told.text, HasSubstr("--resume=auto"));
}

}  // namespace
}  // namespace phalanx
