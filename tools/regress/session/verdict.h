// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/history/records.h"
#include "tools/regress/place.h"
#include "tools/regress/suite/planned_case.h"

namespace phalanx::regress {

/// The state of a case that follows from the end of its run.
struct Verdict {
  history::CaseState state = history::CaseState::kPassed;
  std::string reason{};
  bool may_be_retried = false;  // only the infrastructure has failed
};

/// Judges a run by its end, its expectations, and its standard error. Whatever a run has found out about itself counts:
/// a run that has not met an expectation, or was refused, is never retried.
Verdict judge(const PlannedCase& planned, const JobEnd& end, const history::RunResult& result,
              const std::string& errors);

}  // namespace phalanx::regress
