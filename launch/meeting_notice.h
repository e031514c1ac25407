#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// Tells that a rank waits for the others while the ranks of a job meet, when that takes longer than it should: ranks
/// that nobody has started would otherwise be waited for in silence until framework.timeout.
class MeetingNotice {
 public:
  /// Calls `tell` once, in a thread of its own, unless this object is destroyed within `after`; 0: never.
  MeetingNotice(const LaunchEnvironment& launched, Seconds after, std::function<void(std::string_view)> tell);
  ~MeetingNotice();
  MeetingNotice(const MeetingNotice&) = delete;
  MeetingNotice& operator=(const MeetingNotice&) = delete;

 private:
  std::jthread thread_;
};

/// What it tells. `terminal_of_one`: Slurm gave its terminal to this task alone (srun --pty).
std::string meeting_notice(const LaunchEnvironment& launched, Seconds after, bool terminal_of_one);

}  // namespace phalanx
