// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/group.h"

#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/backends/mpi/runtime.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

Group::Group(MPI_Comm comm, Options options, std::shared_ptr<Inbox> inbox)
    : comm_(comm),
      options_(std::move(options)),
      inbox_(std::move(inbox)),
      waiter_(options_.local_ranks, options_.local_cores) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Group::~Group() {
  if (!broken() && healthy()) MPI_Comm_free(&comm_);
}

std::string Group::where(Op op, std::uint64_t sequence) const {
  return std::string(to_string(op)) + " #" + std::to_string(sequence) + " of " + options_.name + ", rank " +
         std::to_string(rank_) + " of " + std::to_string(size_);
}

// After a timeout, late ranks may still exit normally, so MPI may be finalized. Errors that MPI itself reports are
// worse.
void Group::fail(const CommError& error) {
  const std::lock_guard lock(failing_);
  if (failure_) return;
  failure_ = error;
  broken_.store(true, std::memory_order_release);
  if (error.kind() != CommError::Kind::kTimeout) mark_unhealthy();
}

CommError Group::late(const std::string& where, Seconds waited, const std::string& awaited) {
  std::ostringstream text;
  text.precision(3);
  text << where << ": waited " << waited.count() << " s for " << awaited;
  return {CommError::Kind::kTimeout, text.str()};
}

void keep_until_exit(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<void>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(memory));
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
