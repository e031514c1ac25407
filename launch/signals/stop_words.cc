// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/stop_words.h"

#include <signal.h>
#include <string.h>

#include <cstdio>

namespace phalanx {
namespace {

std::string seconds_of(const Stopping& stopping) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", static_cast<double>(stopping.grace.count()) / 1000);
  return text;
}

}  // namespace

std::string stopping_text(int signal, const Stopping& stopping) {
  const std::string when = stopping.after_step ? " after this step" : "";
  if (signal == SIGINT) return "Stopping" + when + "; press Ctrl-C again to end it now";
  const char* name = ::sigabbrev_np(signal);
  std::string text = "SIG" + std::string(name != nullptr ? name : "?") + ": stopping" + when;
  if (signal == SIGTERM && stopping.grace.count() > 0) text += ", within " + seconds_of(stopping) + " (launch.grace)";
  return text;
}

std::string ended_text(bool asked_again, const Stopping& stopping, const std::string& kept) {
  const std::string why =
      asked_again ? "Ended at once, as requested" : "Ended " + seconds_of(stopping) + " after SIGTERM (launch.grace)";
  return why + ", before the run had stopped" + (kept.empty() ? "" : "; " + kept);
}

}  // namespace phalanx
