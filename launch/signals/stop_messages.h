// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

// Messages for the user about a job that was asked to stop.
namespace phalanx {

/// Defines how a job stops.
struct StopPolicy {
  bool after_step = false;            // it finishes a step and saves its state; otherwise there is nothing to save
  std::chrono::milliseconds grace{};  // time until it is ended after SIGTERM; 0: no limit
};

/// Returns the answer to the first signal.
std::string stop_message(int signal, const StopPolicy& stop_policy);

/// Returns why the job was ended before it had stopped: a second Ctrl-C or SIGTERM, or the end of the grace period
/// after SIGTERM. `saved` describes its saved state and may be empty.
std::string forced_end_message(bool by_user, const StopPolicy& stop_policy, const std::string& saved);

}  // namespace phalanx
