// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/group.h"

#include <algorithm>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/backends/mpi/ulfm.h"
#include "framework/base/first_error.h"
#include "framework/base/text.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

// Without ranks that have ended, the communicator was revoked.
CommError lost(const std::string& where, const std::vector<int>& ended) {
  if (ended.empty()) return {CommError::Kind::kPeerLost, where + ": another rank has called shrink"};
  std::vector<std::string> names;
  for (const int rank : ended) names.push_back(std::to_string(rank));
  return {CommError::Kind::kPeerLost, where + (names.size() == 1 ? ": rank " : ": ranks ") + join(names, ", ") +
                                          (names.size() == 1 ? " has ended" : " have ended")};
}

void revoke_comm(MPI_Comm comm) { check(ulfm()->revoke(comm), "MPIX_Comm_revoke"); }

}  // namespace

Group::Group(MPI_Comm comm, Options options, std::shared_ptr<Inbox> inbox)
    : comm_(comm),
      options_(std::move(options)),
      inbox_(std::move(inbox)),
      waiter_(options_.local_ranks, options_.local_cores) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Group::~Group() {
  if (!broken() && healthy()) {
    MPI_Comm_free(&comm_);
  } else if (!revoked_) {
    const std::lock_guard lock(left_->mutex);
    left_->comms.push_back(comm_);
  }
}

std::string Group::where(Op op, std::uint64_t sequence) const {
  return std::string(to_string(op)) + " #" + std::to_string(sequence) + " of " + options_.name + ", rank " +
         std::to_string(rank_) + " of " + std::to_string(size_);
}

// After a timeout, late ranks may still exit normally, so MPI may be finalized. Errors that MPI itself reports are
// worse, except for losses that it survives.
void Group::fail(const CommError& error) {
  const std::lock_guard lock(failing_);
  if (failure_) return;
  failure_ = error;
  broken_.store(true, std::memory_order_release);
  const bool survived = error.kind() == CommError::Kind::kPeerLost && ulfm() != nullptr;
  if (error.kind() != CommError::Kind::kTimeout && !survived) mark_unhealthy();
}

void Group::check(int code, const std::string& where) const {
  if (code == MPI_SUCCESS) return;
  try {
    mpi::check(code, where);
  } catch (const CommError& error) {
    // Open MPI reports MPI_ERR_OTHER for a collective that begins when it has learned already that it is interrupted.
    if (ulfm() == nullptr || error.kind() == CommError::Kind::kMismatch) throw;
    const auto ended = ulfm()->ended_ranks(comm_);
    if (error.kind() != CommError::Kind::kPeerLost && ended.empty() && !ulfm()->is_revoked(comm_)) throw;
    throw lost(where, ended);
  }
}

void Group::throw_if_ended(int peer, const std::string& where) const {
  if (!any_ended()) return;
  const std::lock_guard lock(others_);
  if (peer == kAny || std::ranges::find(ended_, peer) != ended_.end()) throw lost(where, ended_);
}

void Group::look_for_ended() const {
  if (ulfm() == nullptr) return;
  auto now = ulfm()->ended_ranks(comm_);
  const std::lock_guard lock(others_);
  ended_ = std::exchange(seen_, std::move(now));
  any_ended_.store(!ended_.empty(), std::memory_order_release);
}

std::shared_ptr<Group> Group::derive(MPI_Comm comm, std::string name) {
  auto options = options_;
  options.name = std::move(name);
  auto group = std::make_shared<Group>(comm, std::move(options), inbox_);
  group->left_ = left_;
  const std::lock_guard lock(others_);
  std::erase_if(derived_, [](const auto& one) { return one.expired(); });
  derived_.push_back(group);
  return group;
}

bool Group::revoke(const CommError& error) {
  std::vector<std::weak_ptr<Group>> derived;
  {
    const std::lock_guard lock(others_);
    if (std::exchange(revoked_, true)) return false;
    derived = derived_;
  }
  fail(error);
  // A peer may wait for this rank in any of them, so each is revoked even if MPI cannot revoke another one.
  FirstError first;
  first.of([&] { revoke_comm(comm_); });
  for (const auto comm : take_left()) first.of([&] { revoke_comm(comm); });
  for (const auto& one : derived) {
    if (const auto group = one.lock()) first.of([&] { group->revoke(error); });
  }
  first.rethrow();
  return true;
}

std::vector<MPI_Comm> Group::take_left() const {
  const std::lock_guard lock(left_->mutex);
  return std::exchange(left_->comms, {});
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
