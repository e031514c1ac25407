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
    case Operation::kExchange:
      return "split or allocate";
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
      waiter_(options_.size) {}

Group::~Group() { leave(); }

void Group::leave() {
  if (!failure_) self().presence.store(Presence::kLeft, std::memory_order_release);
}

void Group::fail(const CommError& error) {
  if (!failure_) failure_ = error;
  self().presence.store(Presence::kFailed, std::memory_order_release);
}

void Group::meet(const Call& call) {
  operation_ = call.operation;
  ++sequence_;
  if (failure_) throw CommError(*failure_);
  auto& post = self().posts[parity()];
  post.call = call;
  post.sequence.store(sequence_, std::memory_order_release);
  for (int peer = 0; peer < size(); ++peer) {
    const auto& theirs = members_[peer].posts[parity()].sequence;
    await(peer, [&] { return theirs.load(std::memory_order_acquire) == sequence_; });
  }
  // Whoever comes after the others have given up must not act on what they posted.
  for (int peer = 0; peer < size(); ++peer) {
    if (members_[peer].presence.load(std::memory_order_acquire) == Presence::kFailed) give_up(peer, "gave up", 0);
  }
  compare_calls();
}

void Group::meet_again() {
  self().stage.store(++stage_, std::memory_order_release);
  for (int peer = 0; peer < size(); ++peer) {
    const auto& theirs = members_[peer].stage;
    await(peer, [&] { return theirs.load(std::memory_order_acquire) >= stage_; });
  }
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

template <class Ready>
void Group::await(int rank, const Ready& ready) {
  if (ready()) return;
  waiter_.wait(ready, [&](auto waited) { give_up_if_lost(rank, ready, waited); });
}

void Group::give_up_if_lost(int rank, const std::function<bool()>& ready, Waiter::Clock::duration waited) {
  const auto presence = members_[rank].presence.load(std::memory_order_acquire);
  const bool lost = presence != Presence::kHere || !fabric_->alive(rank);
  const double seconds = std::chrono::duration<double>(waited).count();
  if (!lost && seconds < options_.timeout.count()) return;
  if (ready()) return;  // its last act was to come
  if (lost) give_up(rank, presence == Presence::kHere ? "ended" : "left the group", seconds);
  std::ostringstream text;
  text.precision(3);
  text << where() << ": waited " << seconds << " s for rank " << rank << ", which did not come";
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
