// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tools/regress/session/case_context.h"
#include "tools/regress/session/session_progress.h"
#include "tools/regress/session/session_store.h"
#include "tools/regress/suite/planned_case.h"
#include "tools/regress/suite/quarantine.h"

namespace phalanx::regress {

/// Runs the cases of a session that have not ended yet, in their order, as many at a time as the slots of the place
/// allow. A case waits until there are slots for it, and later cases wait for it. Returns true if all cases have ended,
/// and false if SIGINT, SIGTERM or SIGHUP interrupted them: the running cases are then planned again.
///
/// `stored.cases` correspond to `planned`. Must be called while the process has one thread.
bool run_session(const std::vector<PlannedCase>& planned, const StoredSession& stored, const Quarantine& quarantine,
                 CaseContext& context, SessionProgress& progress);

}  // namespace phalanx::regress
