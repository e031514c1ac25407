// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/hooks.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// A fault that a rank causes on purpose, once, at an exact point of a run. phalanx chaos plans them, and hands them to
/// the ranks in the environment variable kPlannedFault, so that a run under test has the same config as any other.
struct PlannedFault {
  std::string kind{};            // one of planned_fault_kinds()
  int rank = 0;                  // the rank that causes it
  std::int64_t step = 1;         // the step during which it happens, from 1
  Event event = Event::kUpdate;  // at which it happens: kSample to kUpdate
  double seconds = 0;            // for kinds that last
  std::int64_t times = 1;        // for kinds that flip a bit: in how many consecutive steps
  std::string note{};            // the path of a file that the rank creates just before. If it exists, the fault has
                                 // happened, and does not happen again in a job that was started again

  // The rest is for jobs that replace lost ranks (faults.on_lost_rank: replace).
  std::string newcomer{};             // one of newcomer_points(), where the first newcomer is killed; empty: it is not
  std::int64_t awaits_newcomers = 0;  // the first step at whose end ranks wait for newcomers in place of lost ranks, so
                                      // that a short run has them, too; 0: there is no such step
};

/// The variable with a fault as JSON: to_text().
inline constexpr const char* kPlannedFault = "PHALANX_FAULT";

/// Returns the kinds of faults:
///
///   kill, crash, stop      the process gets SIGKILL, SIGSEGV or SIGSTOP
///   leave                  the process ends with status 0, without a word to its peers
///   exception_in_hook      a hook throws
///   exception_in_loader    the training set throws when it is asked for the step-th batch
///   exception_in_model     the model gets an input of a type that it cannot process
///   bad_alloc              memory is refused: std::bad_alloc
///   mismatch               the rank calls a collective that the others do not call
///   slow                   the rank sleeps for `seconds` in this step and in each of the 9 that follow
///   tenth_speed            from this step on, each step of the rank takes ten times as long, since it computes in vain
///   clock_jump             the clock that the rank reads (wall_clock.h) jumps by `seconds`, which may be negative
///   skip_collective        the other ranks call a collective that the rank does not call
///   other_order            all ranks reduce two tensors, the rank in the opposite order
///   lost_message           the rank waits for a message that its neighbour never sends
///   full_pipe              the rank writes to a pipe that nobody reads
///   deadlock               two threads of the rank wait for each other's lock
///   loader_hangs           the training set never returns the step-th batch
///   loader_blocks          the training set opens a file, NOTE.fifo, that never opens, as in a folder of a dead server
///   pause                  the rank waits until the file NOTE.go exists, at most for `seconds`, so that another
///                          process can do something at this point
///   flip_parameter, flip_optimizer, flip_buffer
///                          a bit of one of the tensors changes that a ReplicaCheck compares
///   flip_gradient          a bit of a gradient of this rank changes, before it is combined with those of other ranks
///   flip_message           a bit of a message changes on the way (ChecksummedCommunicator)
///   flip_checkpoint        a bit of the next checkpoint changes in memory, before it is written
std::vector<std::string> planned_fault_kinds();

/// Returns the fault as JSON, and the fault that kPlannedFault describes, if it is set. The second function throws
/// ConfigError if the variable is malformed.
std::string to_text(const PlannedFault& fault);
std::optional<PlannedFault> planned_fault();

/// Returns true for the kinds flip_*, which attach_flip() causes (engine/experiment/flipped_bits.h).
bool flips_bit(const PlannedFault& fault);

/// Creates the file PlannedFault::note or, for repetitions from 1, NOTE.<repetition>. Returns false if it exists: the
/// fault has happened before.
bool note_planned_fault(const PlannedFault& fault, std::int64_t repetition = 0);

/// Returns the number of the step, from 1, during which a hook of this event is called.
std::int64_t number_of_step(const State& state, Event event);

/// Returns the points at which a newcomer can be killed: "loads" (before it loads its data), "waits" (before it waits
/// to take part), "trains" (at the end of its first step).
const std::vector<std::string>& newcomer_points();

/// Ends this process, a newcomer, by SIGKILL if the fault plans that for this point and no other newcomer has ended so.
/// Leaves the note NOTE.1.
void end_newcomer(const PlannedFault& fault, const std::string& point);

/// Waits at the end of a step, if the fault plans that, until `present` returns true, at most for 20 s. `present`
/// returns true if no rank is missing or somebody waits to take part. All ranks call this.
void await_newcomers(const PlannedFault& fault, const State& state, const std::function<bool()>& present);

/// A hook with its event.
struct PlannedHook {
  Event event;
  Hooks::Hook hook;
};

/// Returns the hook that causes the fault, if this rank of `world`, which are all ranks that train, has a part in it.
/// Returns none for faults that flip a bit.
std::optional<PlannedHook> planned_hook(const PlannedFault& fault, const CommunicatorPtr& world);

/// Returns the splits for the rank `rank`; those of exception_in_loader, loader_hangs and loader_blocks fail in the
/// loader's threads.
Splits with_planned_fault(const PlannedFault& fault, int rank, Splits splits);

}  // namespace phalanx
