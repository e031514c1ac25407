// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launch/agents/agent_command.h"
#include "launch/agents/share.h"
#include "launch/failure/verdict.h"
#include "launch/signals/stop_messages.h"

namespace phalanx {

/// Says how hosts may join the job while it runs (train --join).
struct JoinOptions {
  int max_ranks = 0;  // the most ranks of the job (faults.max_ranks); 0: no host may join, and no port is opened
  std::string run_folder{};
  std::string interface{};  // framework.interface
};

struct AgentsLaunch {
  std::vector<HostShare> shares{};            // of divide_among_hosts(); those without ranks are spare
  Reach reach = Reach::kSsh;                  // the way in which other hosts are reached
  std::string log_folder{};                   // log folder of the run; must exist and be visible to all hosts
  std::vector<std::string> pass_variables{};  // further variables for all hosts: names, or beginnings and *
  std::vector<std::string> command{};         // the program to run as an agent, with its arguments
  StopPolicy stop_policy{};                   // reaction to a signal
  std::function<std::string()> describe_saved =
      {};                // describes the saved state of a job that was ended before it had stopped
  bool goes_on = false;  // the ranks that are left go on without one that fails (faults.on_lost_rank: shrink)
  std::chrono::nanoseconds lease = std::chrono::seconds(20);  // lease_length() (beats.h)
  int replacements = 0;  // processes that are started for lost ranks (faults.on_lost_rank: replace); needs goes_on
  double replacement_delay = 1;  // seconds before the second one for the same place; doubles with each, up to 60
  JoinOptions join{};            // needs `replacements`
};

/// Runs `command` as an agent on each host: on other hosts than this one by ssh or srun (command_on()). What agents
/// write to standard output is passed on. Agents run in the current folder. They have PHALANX_AGENT, this process's
/// other PHALANX_* variables and those of `pass_variables`, and PHALANX_TERMINAL=1 or 0. These travel through their
/// standard input, so a secret is in no command line. An agent must call take_agent_order() and run_agent(). With srun,
/// Slurm passes on the other variables of this process, too.
///
/// Failures are handled as in run_local(). With `goes_on`, after the beginning of training, a host whose agent is
/// killed, or to which the connection breaks, is lost with all its ranks, and does not end the job. So is a host that
/// sends no beats (beats.h) until its lease is over; without `goes_on`, it ends the job. The other hosts are then told
/// that the ranks of a lost host have ended for certain. With `replacements`, processes take the places of lost ranks
/// as in run_local(), on their own hosts or in free slots of others (HostReplacements). An agent that has no rank may
/// fail in any way; then its host is lost. With `join`, hosts may join meanwhile (Joins), and a line on the console
/// says how. Agents, and with them all ranks, end when this process ends, in whatever way, or is stopped for the length
/// of a lease. The terminal cannot stop it (Ctrl-Z).
///
/// Must be called in the main thread, with no other threads. Throws ConfigError if a variable cannot be passed on, and
/// Error if it cannot start.
Verdict run_agents(const AgentsLaunch& options);

}  // namespace phalanx
