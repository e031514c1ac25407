// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/mpi_losses.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "launch/failure/loss.h"

namespace phalanx {
namespace {

// The failures may be those of another host, whose files do not cause events here.
constexpr long kLookForFailuresNs = 200'000'000;

Descriptor make_timer() {
  Descriptor timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const timespec interval{.tv_sec = 0, .tv_nsec = kLookForFailuresNs};
  const itimerspec periodic{.it_interval = interval, .it_value = interval};
  if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &periodic, nullptr) != 0) {
    throw Error("cannot make a timer: " + std::generic_category().message(errno));
  }
  return timer;
}

}  // namespace

MpiLosses::MpiLosses(std::string log_folder) : log_folder_(std::move(log_folder)), timer_(make_timer()) {
  take_lost_ranks(log_folder_);
}

void MpiLosses::watch(Supervisor& supervisor) {
  supervisor.watch(timer_.get(), [this, &supervisor] {
    std::uint64_t ignored = 0;
    if (::read(timer_.get(), &ignored, sizeof ignored) < 0 && errno != EAGAIN) return false;
    if (!find_ending()) return true;
    supervisor.begin_shutdown();
    return false;
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
