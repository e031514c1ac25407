// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx::chaos {

/// The correct reaction of a run to a fault.
enum class Expected {
  kGoesOn,   // it ends as if nothing had happened
  kEnds,     // it ends with one of the fault's statuses, or its launcher starts it again; then it resumes
  kRefused,  // it does not begin; then it runs without the fault
};

/// Who causes a fault.
enum class CausedBy {
  kRank,     // the rank itself (engine/hooks/planned_fault.h)
  kDriver,   // this process, while the rank waits
  kBetween,  // this process, after a rank was killed and before the run resumes
  kBefore,   // this process, before the run starts
};

struct Fault {
  std::string name;
  std::string planned{};  // kind of the planned fault by which a rank causes it, or waits while this process does
  CausedBy caused_by = CausedBy::kRank;
  Expected expected = Expected::kEnds;
  std::vector<int> statuses{};  // exit statuses with which a run may end because of it
  double seconds = 0;           // PlannedFault::seconds

  std::vector<std::string> settings{};  // of the run, by which it notices the fault

  bool loses_rank = false;       // with faults.on_lost_rank: shrink or replace, the others go on without the rank
  bool is_replaced = true;       // with replace, a process takes its place
  bool hits_newcomer = false;    // the process in its place is killed, too, and a second one comes; needs replace
  bool before_step = false;      // happens before the step has computed anything, whatever event it is planned for
  bool ends_process = false;     // ranks that are threads of one process end together
  bool needs_processes = false;  // makes no sense for ranks that are threads of one process
  bool needs_peer = false;       // makes no sense for a single rank
  bool needs_mounts = false;     // this process mounts a file system that only it and its children see
  bool needs_hosts = false;      // ranks run on two virtual hosts
  bool needs_tensors = false;    // changes copies that not all runs have on their ranks; drawn only if it is named
  bool at_checkpoint = false;    // happens in a step with a checkpoint
  bool is_shown = true;          // the run has to say something on standard error
  bool names_rank = false;       // this has to name the rank
  bool names_next_step = false;  // and the first step at whose end the fault can be found
  bool keeps_results = true;     // the final weights must equal those of a run without the fault
};

/// Returns all faults, in a fixed order.
const std::vector<Fault>& faults();

/// Returns the fault of this name. Throws ConfigError with a suggestion if there is none.
const Fault& fault_named(std::string_view name);

}  // namespace phalanx::chaos
