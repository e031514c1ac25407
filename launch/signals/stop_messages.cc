// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/stop_messages.h"

#include <signal.h>
#include <string.h>

#include <cstdio>

namespace phalanx {
namespace {

std::string seconds_of(const StopPolicy& stop_policy) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", static_cast<double>(stop_policy.grace.count()) / 1000);
  return text;
}

}  // namespace

std::string stop_message(int signal, const StopPolicy& stop_policy) {
  const std::string when = stop_policy.after_step ? " after this step" : "";
  if (signal == SIGINT) return "Stopping" + when + "; press Ctrl-C again to end it now";
  const char* name = ::sigabbrev_np(signal);
  std::string text = "SIG" + std::string(name != nullptr ? name : "?") + ": stopping" + when;
  if (signal == SIGTERM && stop_policy.grace.count() > 0)
    text += ", within " + seconds_of(stop_policy) + " (launch.grace)";
  return text;
}

std::string forced_end_message(bool by_user, const StopPolicy& stop_policy, const std::string& saved) {
  const std::string why =
      by_user ? "Ended at once, as requested" : "Ended " + seconds_of(stop_policy) + " after SIGTERM (launch.grace)";
  return why + ", before the run had stopped" + (saved.empty() ? "" : "; " + saved);
}

}  // namespace phalanx
