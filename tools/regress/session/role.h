// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/regress/suite/planned_case.h"

namespace phalanx::regress {

/// The runs that a case may consist of, in their order.
enum class Role {
  kMain,       // the case itself
  kReference,  // the config that expect.same_as names
  kOneRank,    // the case on one rank, for expect.scaling
  kFirstHalf,  // the case until it is killed, for expect.resume_at
  kResumed,    // its continuation, in a copy of its folder
  kFaults,     // runs with a fault each, by chaos, for expect.faults
};

/// Returns the name that the database has for a role: "main", "first_half".
std::string to_text(Role role);

/// Returns the runs that a case needs.
std::vector<Role> roles_of(const Relations& relations);

/// The command line of a run of a case, without the program and the paths of what it writes.
struct RoleCommand {
  std::string program = "train";     // the command of phalanx
  std::vector<std::string> words{};  // config and flags
  int ranks = 1;
  int hosts = 1;
  bool survives_lost_host = false;  // see Job
};

/// Returns the command line of a run. `checkpoint_at` is the step at which the run is killed, for kFirstHalf and
/// kResumed.
RoleCommand command_of(const PlannedCase& planned, Role role, std::int64_t checkpoint_at);

/// Returns the step after which a run of `steps` steps is killed, or 0 if it has too few.
std::int64_t step_to_kill_at(double share, double steps);

}  // namespace phalanx::regress
