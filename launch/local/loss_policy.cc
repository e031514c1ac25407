// SPDX-License-Identifier: Apache-2.0
#include "launch/local/loss_policy.h"

#include <signal.h>

#include <chrono>

#include "launch/exit_status.h"
#include "launch/failure/loss.h"
#include "launch/failure/verdict.h"

namespace phalanx {

Supervisor::Policy policy_of(const LocalLaunch& options, const ChildRanks& children, LostProcesses& lost) {
  using std::chrono::milliseconds;
  Supervisor::Policy policy{.stop = SIGTERM,
                            .orphaned = SIGKILL,
                            .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(3500), SIGKILL}},
                            .forced = {{milliseconds(0), SIGKILL}},
                            .others_elsewhere = options.ranks_of_job > options.ranks || !options.meeting_folder.empty(),
                            .stop_policy = options.stop_policy,
                            .describe_saved = options.describe_saved};
  if (!options.goes_on) return policy;
  policy.stopped = std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(options.lost_after));
  policy.goes_on = [&lost](const Supervisor::End& end) { return lost.add(end); };
  policy.is_lost = [&options, &children](int child) {
    return !options.threads && is_noted_as_lost(children.number_of(child), options.log_folder);
  };
  return policy;
}

bool goes_on_without(const Supervisor::End& end, const ChildRanks& children, const RankNotes& notes,
                     LostProcesses& lost) {
  const int rank = children.number_of(end.child);
  notes.note_end(rank);
  if (!notes.waits(rank)) return lost.add(end);
  if (!end.by_supervisor) lost.add_newcomer(end);  // else it was not ready for the signal that asks all to stop
  return true;
}

bool has_left(const Supervisor::End& end, const ChildRanks& children, const RankNotes& notes,
              const std::function<bool(int child)>& is_lost) {
  if (failed(end.status)) return false;
  const int rank = children.number_of(end.child);
  const bool waited = notes.waits(rank);  // it may have been invited
  const bool left = !waited && exit_status_of(end.status) == kDone && is_lost(end.child);
  if (waited || left) notes.note_end(rank);
  return left;
}

}  // namespace phalanx
