// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/session/role.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace phalanx::regress {
namespace {

void set(RoleCommand& command, const std::string& assignment) { command.words.push_back("--set=" + assignment); }

void set(RoleCommand& command, const std::vector<std::string>& assignments) {
  for (const auto& assignment : assignments) set(command, assignment);
}

}  // namespace

std::string to_text(Role role) {
  switch (role) {
    case Role::kMain:
      return "main";
    case Role::kReference:
      return "reference";
    case Role::kOneRank:
      return "one_rank";
    case Role::kFirstHalf:
      return "first_half";
    case Role::kResumed:
      return "resumed";
    case Role::kFaults:
      return "faults";
  }
  return {};
}

std::vector<Role> roles_of(const Relations& relations) {
  std::vector<Role> roles{Role::kMain};
  if (relations.same_as) roles.push_back(Role::kReference);
  if (relations.scaling) roles.push_back(Role::kOneRank);
  if (relations.resume_at) roles.insert(roles.end(), {Role::kFirstHalf, Role::kResumed});
  if (relations.faults) roles.push_back(Role::kFaults);
  return roles;
}

RoleCommand command_of(const PlannedCase& planned, Role role, std::int64_t checkpoint_at) {
  RoleCommand command{.words = {planned.config},
                      .ranks = planned.ranks,
                      .hosts = planned.hosts,
                      .survives_lost_host = planned.survives_lost_host};
  const auto& same_as = planned.relations.same_as;
  if (role == Role::kReference) {
    command = {.words = {same_as->config}, .ranks = same_as->ranks, .hosts = 1};
    set(command, same_as->overrides);
  } else {
    set(command, planned.overrides);
  }
  if (role != Role::kMain) set(command, "expect={}");
  // Losses are compared step by step.
  if (same_as && (role == Role::kMain || role == Role::kReference)) set(command, "watch.every_steps=1");
  if (role == Role::kOneRank) {
    command.ranks = command.hosts = 1;
    set(command, {"launch.ranks=1", "mesh={}", "roles={}", "strategy=auto", "backend=auto"});
  }
  if (role == Role::kFirstHalf || role == Role::kResumed) {
    set(command, "checkpoint.every_steps=" + std::to_string(checkpoint_at));
    // A run with expect.same_as has written a line for each step, with which this one is compared.
    if (same_as) set(command, "watch.every_steps=1");
  }
  if (role == Role::kFaults) {
    const auto& faults = *planned.relations.faults;
    command.program = "chaos";
    for (const auto& [flag, value] : {std::pair("--runs=", faults.injected), std::pair("--seed=", faults.seed)}) {
      command.words.push_back(flag + std::to_string(value));
    }
  }
  if (role == Role::kResumed) command.words.emplace_back("--resume=auto");
  return command;
}

std::int64_t step_to_kill_at(double share, double steps) {
  if (!(steps >= 2)) return 0;
  return std::clamp<std::int64_t>(std::llround(share * steps), 1, static_cast<std::int64_t>(steps) - 1);
}

}  // namespace phalanx::regress
