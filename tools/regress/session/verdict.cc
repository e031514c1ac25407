// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/verdict.h"

#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "tools/regress/results/failure_text.h"

namespace phalanx::regress {
namespace {

using history::CaseState;

std::string status_text(int status, const std::string& errors) {
  const std::string reason = reason_in(errors);
  return "status " + std::to_string(status) + (reason.empty() ? "" : ": " + reason);
}

}  // namespace

Verdict judge(const PlannedCase& planned, const JobEnd& end, const history::RunResult& result,
              const std::string& errors) {
  const auto unmet = unmet_lines(result.expectations);
  switch (end.exit_status) {
    case kDone:
    case kExpectationFailed:
      if (!unmet.empty()) return {CaseState::kFailed, join(unmet, "; ")};
      if (end.exit_status == kDone) return {};
      return {CaseState::kFailed, status_text(end.exit_status, errors)};
    case kUsage:
      return {planned.skip_if_refused ? CaseState::kSkipped : CaseState::kFailed, "refused: " + reason_in(errors)};
    default:
      break;
  }
  if (end.timed_out) {
    const std::string reason = reason_in(errors);
    return {CaseState::kFailed, format_text("had not ended after %g s", planned.time_limit) +
                                    (reason.empty() ? "" : "; its last words: " + reason)};
  }
  if (!end.infrastructure_error.empty()) return {CaseState::kError, end.infrastructure_error, true};
  return {CaseState::kFailed, status_text(end.exit_status, errors)};
}

}  // namespace phalanx::regress
