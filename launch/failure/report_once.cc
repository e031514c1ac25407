// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/report_once.h"

#include <chrono>
#include <thread>

#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"

namespace phalanx {

void report_once(const std::string& log_folder, int ranks) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(500);
  auto failures = read_failures(log_folder);
  while ((failures.empty() || failures.front().secondary) && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    failures = read_failures(log_folder);
  }
  if (failures.empty()) return;  // another rank has reported them
  // Until one rank has claimed the report, all ranks must be able to find every failure.
  if (claim_report(log_folder)) {
    const Verdict verdict{.cause = failures.front(), .others = static_cast<int>(failures.size()) - 1};
    report(verdict, ranks, log_folder);
  }
  take_failures(log_folder);
}

}  // namespace phalanx
