// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

// Messages for the user about a job that was asked to stop.
namespace phalanx {

/// Defines how a job stops.
struct Stopping {
  bool after_step = false;            // it finishes a step and saves its state; otherwise there is nothing to save
  std::chrono::milliseconds grace{};  // time until it is ended after SIGTERM; 0: no limit
};

/// Returns the answer to the first signal.
std::string stopping_text(int signal, const Stopping& stopping);

/// Returns why the job was ended before it had stopped: a second Ctrl-C or SIGTERM, or the end of the grace period
/// after SIGTERM. `kept` describes its saved state and may be empty.
std::string ended_text(bool asked_again, const Stopping& stopping, const std::string& kept);

}  // namespace phalanx
