// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/rendezvous_notice.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/text.h"

namespace phalanx {

std::string rendezvous_notice(const LaunchEnvironment& launched, Seconds after, bool terminal_of_one) {
  const int others = launched.rank_info.size - 1;
  std::string text = format_text("rank %d has waited %.3g s for the other %s", launched.rank_info.rank, after.count(),
                                 others == 1 ? "rank" : (std::to_string(others) + " ranks").c_str()) +
                     " to connect, which " + launched.launcher + " should have started";
  if (!launched.rendezvous.empty()) text += ", at " + launched.rendezvous.substr(0, launched.rendezvous.find('?'));
  if (terminal_of_one) {
    text +=
        "; srun --pty connects the terminal to one task, and the shells of the other tasks have ended: leave this "
        "shell, and call srun with the program itself, or from a shell of salloc";
  }
  return text;
}

RendezvousNotice::RendezvousNotice(const LaunchEnvironment& launched, Seconds after,
                                   std::function<void(std::string_view)> print) {
  // More ranks would only repeat the same text.
  if (after.count() <= 0 || launched.rank_info.size == 1 || launched.rank_info.rank > 1) return;
  // srun gives its tasks a terminal only with --pty.
  const bool terminal_of_one =
      launched.launcher == "srun" && (environment("SLURM_PTY_PORT") || ::isatty(STDIN_FILENO) != 0);
  thread_ = std::jthread([after, print = std::move(print),
                          text = rendezvous_notice(launched, after, terminal_of_one)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any destroyed;
    std::unique_lock lock(mutex);
    destroyed.wait_for(lock, stop, after, [] { return false; });
    if (!stop.stop_requested()) print(text);
  });
}

RendezvousNotice::~RendezvousNotice() = default;

}  // namespace phalanx
