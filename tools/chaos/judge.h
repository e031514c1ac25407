// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "framework/base/json.h"
#include "tools/chaos/row.h"
#include "tools/chaos/subject.h"

namespace phalanx::chaos {

/// Returns true if, after this fault, a launcher can start the ranks again, or ranks can go on without a lost one.
bool may_recover(const Fault& fault);

/// Returns true if the others go on when this fault costs a rank (faults.on_lost_rank: shrink or replace).
bool goes_on_without_lost(const Fault& fault, const Launching& launching);

/// Returns true if a process then takes the place of the rank.
bool replaces_lost(const Fault& fault, const Launching& launching);

/// Returns true if the standard error of a run says that it has gone on without a rank.
bool says_rank_is_lost(const std::string& errors);

/// Judges the end of the attempt with the fault by Row::status and by `errors`, its standard error. Sets
/// Row::recovered, and adds what is wrong to Row::problems.
void judge_end(const Launching& launching, const std::string& errors, Row& row);

/// Judges which ranks took part in a run that has gone on without one ("shrunk"), by its summary.json and by `errors`,
/// the standard error of the attempt with the fault. Sets Row::recovered to "replaced" and Row::returned_seconds if a
/// newcomer has taken the place of the rank, sets Row::lost_steps, and adds what is wrong to Row::problems.
void judge_members(const Launching& launching, const JsonValue& summary, const std::string& errors, Row& row);

/// Returns the step after which a run has resumed last, as its log says; 0: it began from scratch.
std::int64_t last_resumed_step(const std::string& log);

/// Returns the number of complete steps that a run computed again because it went on from step `kept`.
std::int64_t steps_repeated(const Trial& trial, std::int64_t kept);

}  // namespace phalanx::chaos
