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

struct Reported {
  int status;
  std::string text;
};

Reported report_of(const ExperimentResult& result) {
  const ExperimentContext context{
      .world = connect("inproc", {}, Seconds(5)), .splits = {}, .folder = RunFolder("runs/x")};
  ::testing::internal::CaptureStdout();
  const int status = report_end(ExperimentConfig(), result, context);
  standard_output().flush();
  return {status, ::testing::internal::GetCapturedStdout()};
}

TEST(ReportEnd, AFinishedRunIsDone) {
  const Reported reported = report_of({.steps = 120});
  EXPECT_EQ(reported.status, kDone);
  EXPECT_EQ(reported.text, "Done after step 120; everything is in runs/x\n");
}

TEST(ReportEnd, AStoppedRunTellsHowToResumeIt) {
  const Reported reported = report_of({.steps = 7, .stopped = true});
  EXPECT_EQ(reported.status, kInterrupted);
  EXPECT_THAT(reported.text, HasSubstr("Stopped after step 7"));
  EXPECT_THAT(reported.text, HasSubstr("--run_dir=runs/x --resume=auto"));
}

TEST(ReportEnd, ARunWhoseTimeIsUpCanBeResumedToo) {
  const Reported reported = report_of({.steps = 7, .stopped = true, .time_up = true});
  EXPECT_EQ(reported.status, kTimeUp);
  EXPECT_THAT(reported.text, HasSubstr("Time limit reached after step 7"));
  EXPECT_THAT(reported.text, HasSubstr("--resume=auto"));
}

}  // namespace
}  // namespace phalanx
