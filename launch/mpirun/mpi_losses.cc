// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpi_losses.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "launch/failure/loss.h"

namespace phalanx {
namespace {

// The failures may be those of another host, whose files do not cause events here.
constexpr std::chrono::milliseconds kLookForFailures{200};

}  // namespace

MpiLosses::MpiLosses(std::string log_folder) : log_folder_(std::move(log_folder)) { take_lost_ranks(log_folder_); }

void MpiLosses::watch(Supervisor& supervisor) {
  supervisor.repeat(kLookForFailures, [this, &supervisor] {
    if (ending_.empty() && find_ending()) supervisor.begin_shutdown();
  });
}

bool MpiLosses::find_ending() {
  for (const auto& failure : read_failures(log_folder_)) {
    if (!is_loss(failure.rank, failure.status, failure, log_folder_)) ending_.push_back(failure);
  }
  return !ending_.empty();
}

void MpiLosses::settle(std::vector<Failure>& failures) {
  const auto lost = take_lost_ranks(log_folder_);
  std::erase_if(failures, [&](const Failure& one) { return std::ranges::find(lost, one.rank) != lost.end(); });
  // The others may have taken a rank that has ended the job for a lost one.
  for (const auto& one : ending_) {
    if (std::ranges::find(failures, one.rank, &Failure::rank) == failures.end()) failures.push_back(one);
  }
}

}  // namespace phalanx
