// SPDX-License-Identifier: Apache-2.0
#include "launch/job/make_data.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/config/make_section.h"
#include "framework/base/blocked_signals.h"
#include "framework/base/console.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/job/run_header.h"
#include "launch/signals/stop_signal.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPollInterval(50);  // interval at which a request to stop is checked
constexpr milliseconds kTerminalInterval(500);
constexpr seconds kPlainInterval(5);

/// Prints how long something has been going on, and ends the process when it is asked to stop.
class Wait {
 public:
  /// `prints`: prints a message when it ends the process; `counts`: prints the time.
  Wait(std::string what, bool prints, bool counts, bool terminal)
      : what_(std::move(what)), prints_(prints), counts_(counts), terminal_(terminal) {
    const BlockedSignals blocked;  // signals go to the threads that expect them
    thread_ = std::thread([this] { watch(); });
  }
  ~Wait() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
    if (drawn_) standard_output().write("\r\033[K");
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kPollInterval, [this] { return over_; })) {
      if (stop_requested()) stop();
      try {
        if (counts_ && Clock::now() >= next_) print_elapsed();
      } catch (const std::exception& error) {
        counts_ = false;
        log_warning() << "no longer shows how long this takes: " << error.what();
      }
    }
  }

  void print_elapsed() {
    const auto elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    const std::string text = what_ + format_text(": %.0f s", elapsed);
    if (terminal_) {
      drawn_ |= standard_output().draw("\r\033[K" + text);
    } else {
      standard_output().write(text + "\n");
    }
    next_ += terminal_ ? kTerminalInterval : kPlainInterval;
  }

  [[noreturn]] void stop() const {
    if (prints_) {
      standard_output().write(std::string(drawn_ ? "\r\033[K" : "") +
                              "Stopped before the first step; there is nothing to resume\n");
      standard_output().flush();
    }
    ::_exit(kInterrupted);
  }

  const std::string what_;
  const bool prints_;
  bool counts_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + (terminal_ ? kTerminalInterval : kPlainInterval);
  bool drawn_ = false, over_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace

Splits make_data(const Job& job, bool prints) {
  const bool shown = prints && !job.quiet;
  const Wait wait("Preparing dataset " + job.config.dataset.selected(), shown, shown && job.config.watch.progress,
                  on_terminal());
  return make_section("dataset", job.config.dataset);
}

}  // namespace phalanx
