// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

// What a person is told of a job that was asked to stop.
namespace phalanx {

/// How a job stops.
struct Stopping {
  bool after_step = false;            // it finishes a step and saves itself; otherwise it has nothing to save
  std::chrono::milliseconds grace{};  // after SIGTERM, then it is ended; 0: however long it takes
};

/// The answer to the first signal.
std::string stopping_text(int signal, const Stopping& stopping);

/// Why the job was ended before it had stopped: a second Ctrl-C or SIGTERM, or the end of the time that SIGTERM leaves.
/// `kept`: what is left of it; may be empty.
std::string ended_text(bool asked_again, const Stopping& stopping, const std::string& kept);

}  // namespace phalanx
