#include "framework/backends/direct/group.h"

#include <c10/core/ScalarType.h>

#include <sstream>

#include "framework/base/error.h"
#include "framework/comm/reduction.h"

namespace phalanx::direct {
namespace {

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSplit:
      return "split";
    case Operation::kAllocate:
      return "allocate";
    case Operation::kNone:
      break;
  }
  return "nothing";
}

std::string describe(const Call& call) {
  std::ostringstream text;
  text << to_string(call.operation);
  if (call.operation == Operation::kAllReduce) text << '(' << to_string(static_cast<Reduction>(call.reduction)) << ')';
  if (call.operation == Operation::kBroadcast) text << "(root " << call.root << ')';
  if (call.operation == Operation::kAllReduce || call.operation == Operation::kBroadcast) {
    text << " of " << call.elements << ' ' << c10::toString(static_cast<c10::ScalarType>(call.dtype));
  }
  if (call.operation == Operation::kAllocate) text << " of " << call.elements << " bytes";
  return text.str();
}

bool agree(const Call& a, const Call& b) {
  return a.operation == b.operation && a.elements == b.elements && a.dtype == b.dtype && a.reduction == b.reduction &&
         a.root == b.root;
}

}  // namespace

Group::Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric)
    : options_(std::move(options)),
      control_(std::move(control)),
      fabric_(std::move(fabric)),
      members_(ControlBlock::members(control_.get())),
      waiter_(options_.ranks_here > 0 ? options_.ranks_here : options_.size) {}

Group::~Group() { leave(); }

void Group::leave() {
  if (!failure_) self().presence.store(Presence::kLeft, std::memory_order_release);
}

void Group::fail(const CommError& error) {
  if (!failure_) failure_ = error;
  self().failed_in.store(sequence_, std::memory_order_relaxed);
  self().presence.store(Presence::kFailed, std::memory_order_release);
}

void Group::throw_if_broken() const {
  if (failure_) throw CommError(*failure_);
}

void Group::meet(const Call& call) {
  throw_if_broken();
  operation_ = call.operation;
  ++sequence_;
  waiting_since_.reset();
  auto& post = self().posts[parity()];
  post.call = call;
  post.sequence.store(sequence_, std::memory_order_release);
  await_all([this](int peer) {
    return members_[peer].posts[parity()].sequence.load(std::memory_order_acquire) == sequence_;
  });
  // Whoever comes after the others have given up must not act on what they posted.
  for (int peer = 0; peer < size(); ++peer) {
    const auto& member = members_[peer];
    const bool failed = member.presence.load(std::memory_order_acquire) == Presence::kFailed;
    if (failed && member.failed_in.load(std::memory_order_relaxed) <= sequence_) give_up(peer, "gave up", 0);
  }
  compare_calls();
}

void Group::meet_again() {
  self().stage.store(++stage_, std::memory_order_release);
  await_all([this](int peer) { return members_[peer].stage.load(std::memory_order_acquire) >= stage_; });
}

// Every rank compares all calls with rank 0's, so that all of them see the same first disagreement.
void Group::compare_calls() const {
  const Call& first = call_of(0);
  for (int peer = 1; peer < size(); ++peer) {
    const Call& theirs = call_of(peer);
    if (agree(first, theirs)) continue;
    throw CommError(CommError::Kind::kMismatch, where() + ": ranks disagree: rank 0 calls " + describe(first) +
                                                    ", rank " + std::to_string(peer) + " calls " + describe(theirs));
  }
}

template <class Arrived>
void Group::await_all(const Arrived& arrived) {
  for (int peer = 0; peer < size(); ++peer) {
    if (arrived(peer)) continue;
    waiter_.wait([&] { return arrived(peer); }, [&](auto waited) { give_up_if_lost(arrived, waited); });
  }
}

// Looks at all who are missing, so that one who has died is noticed also while another is merely late. The deadline is
// that of the operation, not of each meeting in it.
void Group::give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited) {
  const auto now = Waiter::Clock::now();
  if (!waiting_since_) waiting_since_ = now - waited;
  const double seconds = std::chrono::duration<double>(now - *waiting_since_).count();
  int missing = -1;
  for (int peer = size() - 1; peer >= 0; --peer) {
    if (arrived(peer)) continue;
    missing = peer;
    const auto presence = members_[peer].presence.load(std::memory_order_acquire);
    const bool lost = presence != Presence::kHere || !fabric_->alive(peer);
    if (!lost || arrived(peer)) continue;  // its last act may have been to come
    give_up(peer, presence == Presence::kHere ? "ended" : "left the group", seconds);
  }
  if (missing < 0 || seconds < options_.timeout.count()) return;
  std::ostringstream text;
  text.precision(3);
  text << where() << ": waited " << seconds << " s for rank " << missing << ", which did not come";
  throw_for_good(CommError(CommError::Kind::kTimeout, text.str()));
}

void Group::give_up(int rank, const char* what_it_did, double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << where() << ": rank " << rank << ' ' << what_it_did << " (noticed after " << seconds << " s)";
  throw_for_good(CommError(CommError::Kind::kPeerLost, text.str()));
}

void Group::throw_for_good(const CommError& error) {
  fail(error);
  throw error;
}

std::string Group::where() const {
  return std::string(to_string(operation_)) + " #" + std::to_string(sequence_) + " of " + options_.name + ", rank " +
         std::to_string(rank()) + " of " + std::to_string(size());
}

}  // namespace phalanx::direct
