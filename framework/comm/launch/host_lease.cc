// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/host_lease.h"

#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <system_error>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {

using std::chrono::nanoseconds;

// Precedes a byte for each rank of the job.
struct HostLease::Page {
  std::atomic<std::int64_t> until;
  std::atomic<bool> ended[];

  static std::size_t bytes(int ranks) {
    return sizeof(Page) + static_cast<std::size_t>(ranks) * sizeof(std::atomic<bool>);
  }
};

namespace {

std::shared_ptr<HostLease>& lease_of_process() {
  static std::shared_ptr<HostLease> lease;
  return lease;
}

}  // namespace

nanoseconds boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

HostLease::HostLease(int ranks, nanoseconds until, Clock clock) : ranks_(ranks), clock_(std::move(clock)) {
  void* memory = ::mmap(nullptr, Page::bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error("cannot share memory between an agent and its ranks: " + std::generic_category().message(errno));
  }
  page_ = new (memory) Page;  // the kernel has filled the rest with zeros
  set_end(until);
}

HostLease::~HostLease() { ::munmap(page_, Page::bytes(ranks_)); }

void HostLease::set_end(nanoseconds until) { page_->until = until.count(); }

bool HostLease::holds() const { return clock_().count() < page_->until; }

void HostLease::declare_ended(int rank) {
  if (rank >= 0 && rank < ranks_) page_->ended[rank] = true;
}

bool HostLease::has_ended(int rank) const { return rank >= 0 && rank < ranks_ && page_->ended[rank]; }

void set_lease_of_process(std::shared_ptr<HostLease> lease) { lease_of_process() = std::move(lease); }

bool is_known_to_have_ended(int rank) {
  const auto& lease = lease_of_process();
  return lease != nullptr && lease->has_ended(rank);
}

bool lease_is_over() {
  const auto& lease = lease_of_process();
  return lease != nullptr && !lease->holds();
}

void end_without_lease() {
  if (!lease_is_over()) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();  // the signal is on its way
}

}  // namespace phalanx
