// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// Tells the user that a rank is waiting for the others to connect if that takes longer than it should. Without it, a
/// rank waits silently until framework.timeout for ranks that may never have been started.
class RendezvousNotice {
 public:
  /// Calls `tell` once, in another thread, unless this object is destroyed within `after`. 0 means never.
  RendezvousNotice(const LaunchEnvironment& launched, Seconds after, std::function<void(std::string_view)> print);
  ~RendezvousNotice();
  RendezvousNotice(const RendezvousNotice&) = delete;
  RendezvousNotice& operator=(const RendezvousNotice&) = delete;

 private:
  std::jthread thread_;
};

/// Returns the text of the notice. `terminal_of_one` means that Slurm connected its terminal to this task only (srun
/// --pty).
std::string rendezvous_notice(const LaunchEnvironment& launched, Seconds after, bool terminal_of_one);

}  // namespace phalanx
