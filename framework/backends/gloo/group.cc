// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/group.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/base/text.h"

namespace phalanx::gloo {
namespace {

constexpr std::uint64_t kPart = 0x43;  // first byte of a slot; slots of Gloo's own algorithms begin with 1 to 8

CommError explain(const std::string& where, const Absent& absent) {
  std::vector<std::string> ranks;
  for (const int rank : absent.ranks) ranks.push_back(std::to_string(rank));
  std::ostringstream text;
  text.precision(3);
  text << where << ": waited " << absent.seconds << " s";
  if (!ranks.empty()) text << " for rank" << (ranks.size() > 1 ? "s " : " ") << join(ranks, ", ");
  text << ", which did not come";
  return {CommError::Kind::kTimeout, text.str()};
}

CommError explain(const std::string& where, const Lost& lost) {
  std::ostringstream text;
  text.precision(3);
  text << where << ": rank " << lost.rank << " left the group or ended (" << lost.why << "; noticed after "
       << lost.seconds << " s)";
  return {CommError::Kind::kPeerLost, text.str()};
}

}  // namespace

std::uint64_t CollectiveCall::slot(std::size_t bytes) const { return kPart << 56 | mix(identity, bytes) >> 8; }

Group::Group(std::string name, std::shared_ptr<Transport> transport)
    : name_(std::move(name)), transport_(std::move(transport)), context_(std::make_shared<Context>(transport_)) {}

CollectiveCall Group::next_collective(const Call& call, std::optional<Seconds> timeout) {
  const std::uint64_t number = collectives_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint64_t identity = number;
  for (const auto part : {static_cast<std::uint64_t>(call.elements), call.detail, static_cast<std::uint64_t>(call.peer),
                          static_cast<std::uint64_t>(call.op), static_cast<std::uint64_t>(call.dtype),
                          static_cast<std::uint64_t>(call.reduction)}) {
    identity = mix(identity, part);
  }
  using std::chrono::milliseconds;
  const auto limit = timeout ? std::chrono::ceil<milliseconds>(*timeout) : this->timeout();
  return {.context = context_, .number = number, .identity = identity, .timeout = std::max(limit, milliseconds(0))};
}

void Group::throw_if_broken() const {
  if (broken_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

// If the group is already broken, throws the error that broke it.
void Group::fail(const std::string& where) {
  std::exception_ptr error = std::current_exception();
  try {
    throw;
  } catch (const Absent& absent) {
    error = std::make_exception_ptr(explain(where, absent));
  } catch (const Lost& lost) {
    error = std::make_exception_ptr(explain(where, lost));
  } catch (const CommError& comm_error) {
    if (comm_error.kind() == CommError::Kind::kMismatch) throw;
  } catch (const std::exception& other) {
    error = std::make_exception_ptr(CommError(CommError::Kind::kSystem, where + ": " + text_of(other)));
  }
  break_with(std::move(error));
  std::rethrow_exception(failure_);
}

void Group::abandon(const std::string& why) {
  break_with(std::make_exception_ptr(CommError(CommError::Kind::kPeerLost, why)));
}

void Group::break_with(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    broken_.store(true, std::memory_order_release);
  }
  transport_->close("a peer has given up");
}

std::string Group::describe() const {
  return name_ + ", rank " + std::to_string(rank()) + " of " + std::to_string(size());
}

}  // namespace phalanx::gloo
