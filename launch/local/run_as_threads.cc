// SPDX-License-Identifier: Apache-2.0
#include "launch/local/run_as_threads.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iostream>
#include <mutex>
#include <vector>

#include "launch/exit_status.h"
#include "launch/failure/end_after_failure.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/loss.h"
#include "launch/failure/record_exception.h"
#include "launch/failure/verdict.h"
#include "launch/local/lost_processes.h"
#include "launch/local/rank_threads.h"

namespace phalanx {
namespace {

// The ends of ranks that are threads of this process. Thread-safe.
class LostThreads {
 public:
  explicit LostThreads(const LocalLaunch& options)
      : options_(options),
        statuses_(static_cast<std::size_t>(options.ranks)),
        running_(static_cast<std::size_t>(options.ranks), true) {}

  // Ends the process soon if the other ranks do not go on, or if only lost ranks are left, which may hang for ever.
  void ended(int rank, int status) {
    const std::lock_guard lock(mutex_);
    statuses_.at(static_cast<std::size_t>(rank)) = status;
    running_.at(static_cast<std::size_t>(rank)) = false;
    const bool others = std::ranges::find(running_, true) != running_.end();
    const bool goes_on = others && is_loss(options_, rank, status, failure_left_by(rank, options_.log_folder));
    if (is_failure(status) && !goes_on) end_.failed(status);
    if (!others || !options_.goes_on) return;
    const auto lost = lost_ranks(options_.log_folder);
    for (int other = 0; other < options_.ranks; ++other) {
      if (running_[static_cast<std::size_t>(other)] && std::ranges::find(lost, other) == lost.end()) return;
    }
    end_.failed(status_without(lost));
    std::cout.flush();
    std::fflush(nullptr);
  }

  // Returns the status of the process, once all ranks have ended.
  int status() const { return status_without(lost_ranks(options_.log_folder)); }

 private:
  int status_without(const std::vector<int>& lost) const {
    auto statuses = statuses_;
    for (const int rank : lost) statuses.at(static_cast<std::size_t>(rank)) = kDone;
    return most_serious(statuses);
  }

  const LocalLaunch& options_;
  std::mutex mutex_;
  std::vector<int> statuses_;  // kDone: the rank has not ended yet
  std::vector<bool> running_;
  EndAfterFailure end_;
};

}  // namespace

int run_as_threads(const LocalLaunch& options, const std::function<int(int rank)>& body) {
  LostThreads ends(options);
  run_rank_threads(options.ranks, [&](const RankInfo& rank_info) {
    const int rank = rank_info.rank;
    int status = kDone;
    try {
      status = body(rank);
    } catch (...) {
      status = record_exception(std::current_exception(), rank, options.log_folder, log_path(options.log_folder, rank));
    }
    ends.ended(rank, status);
  });
  return ends.status();
}

}  // namespace phalanx
