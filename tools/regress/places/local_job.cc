// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/places/local_job.h"

#include <signal.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/exit_status.h"

namespace phalanx::regress {
namespace {

constexpr std::chrono::seconds kPatience{5};  // between SIGTERM and SIGKILL
constexpr std::chrono::hours kForever{24 * 365};

std::string text_of(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) ? read_file(path) : "";
}

}  // namespace

LocalJob::LocalJob(const Job& job, const PlaceOptions& options,
                   std::vector<std::pair<std::string, std::string>> variables)
    : folder_(job.folder),
      deadline_(Clock::now() + (job.time_limit > 0 ? std::chrono::duration_cast<Clock::duration>(
                                                         std::chrono::duration<double>(job.time_limit))
                                                   : Clock::duration(kForever))) {
  variables.emplace_back(kOwnerVariable, options.owner);
  variables.emplace_back("TMPDIR", temporary_.path());
  try {
    process_.emplace(ProcessOptions{.command = job.command,
                                    .output = folder_ + "/stdout.log",
                                    .errors = folder_ + "/stderr.log",
                                    .variables = std::move(variables)});
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

std::optional<JobEnd> LocalJob::poll() {
  if (!process_) return JobEnd{.exit_status = kFailed, .infrastructure_error = failure_};
  const auto now = Clock::now();
  if (!kill_at_ && now >= deadline_) {
    timed_out_ = true;
    stop();
  }
  if (kill_at_ && now >= *kill_at_) process_->signal_group(SIGKILL);
  const auto status = process_->poll();
  if (!status) return std::nullopt;
  JobEnd end{.exit_status = *status, .timed_out = timed_out_};
  if (process_->ended_by_others()) {
    end.infrastructure_error = "signal " + std::to_string(*status - 128) + " from outside ended the run's launcher";
  } else if (*status == kInterrupted && !kill_at_) {
    end.infrastructure_error = "a signal from outside stopped the run";
  } else if (!kill_at_) {
    end.infrastructure_error = infrastructure_error(*status, text_of(folder_ + "/stderr.log"));
  }
  return end;
}

void LocalJob::stop() {
  if (!process_ || kill_at_) return;
  kill_at_ = Clock::now() + kPatience;
  process_->signal(SIGTERM);
}

void LocalJob::kill() {
  if (!process_) return;
  kill_at_ = Clock::now();
  process_->signal_group(SIGKILL);
}

std::string infrastructure_error(int exit_status, const std::string& errors) {
  static constexpr std::array kSigns{"No space left on device", "Disk quota exceeded",      "ddress already in use",
                                     "No route to host",        "Could not resolve host",   "ssh: connect to host",
                                     "kex_exchange_identif",    "unable to reliably start", "lost communication with",
                                     "Stale file handle"};
  if (exit_status == kDone || exit_status == kUsage || exit_status == kExpectationFailed) return {};
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    for (const char* sign : kSigns) {
      if (line.find(sign) != std::string::npos) return line.substr(0, 300);
    }
  }
  return {};
}

}  // namespace phalanx::regress
