// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/group.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "framework/base/error.h"

namespace phalanx::shared_memory {

namespace {

// Copies whole lines separately, because the compiler knows their size.
void write_lines(FlaggedLine* line, std::span<const std::byte> bytes, std::uint64_t sequence) {
  for (; bytes.size() >= FlaggedLine::kBytes; bytes = bytes.subspan(FlaggedLine::kBytes), ++line) {
    std::memcpy(line->data, bytes.data(), FlaggedLine::kBytes);
    line->sequence.store(sequence, std::memory_order_release);
  }
  if (bytes.empty()) return;
  std::memcpy(line->data, bytes.data(), bytes.size());
  line->sequence.store(sequence, std::memory_order_release);
}

void read_lines(std::byte* to, const FlaggedLine* line, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += FlaggedLine::kBytes) {
    std::memcpy(to, line[i].data, FlaggedLine::kBytes);
  }
}

}  // namespace

Group::Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric, std::function<void()> idle)
    : options_(std::move(options)),
      control_(std::move(control)),
      fabric_(std::move(fabric)),
      idle_(std::move(idle)),
      block_(control_.get(), options_.size),
      payloads_(kPayloadBytes * static_cast<std::size_t>(options_.size)),
      waiter_(options_.local_ranks > 0 ? options_.local_ranks : options_.size, options_.local_cores) {}

Group::~Group() {
  leave();
  self().gone.store(1, std::memory_order_release);
}

void Group::leave() {
  schedule_point();
  if (!broken()) self().presence.store(Presence::kLeft, std::memory_order_release);
}

void Group::fail(const CommError& error) { fail_in(sequence(), error); }

void Group::fail_between_calls(const CommError& error) { fail_in(sequence() + 1, error); }

void Group::fail_in(std::uint64_t sequence, const CommError& error) {
  const std::lock_guard lock(failing_);
  if (failure_) return;
  failure_ = error;
  broken_.store(true, std::memory_order_release);
  self().failed_in.store(sequence, std::memory_order_relaxed);
  schedule_point();
  self().presence.store(Presence::kFailed, std::memory_order_release);
}

void Group::throw_failure() const {
  const std::lock_guard lock(failing_);
  throw CommError(*failure_);
}

const char* Group::loss_of(int peer) const {
  const auto presence = block_.member(peer).presence.load(std::memory_order_acquire);
  if (presence != Presence::kPresent) return "left the group";
  return fabric_->alive(peer) ? nullptr : "ended";
}

void Group::exchange_posts(const Post& mine, std::optional<Seconds> timeout) {
  begin(timeout);
  post(mine);
  await_all([this, sequence = sequence()](int peer) { return posted(peer, sequence); });
  agree();
}

void Group::exchange_posts(const Post& mine, std::span<const std::byte> payload, std::size_t bytes, int sender) {
  begin({});
  const std::uint64_t sequence = this->sequence();
  write_lines(self().payload[sequence % 2], payload, sequence);
  post(mine);
  const std::size_t lines = (bytes + FlaggedLine::kBytes - 1) / FlaggedLine::kBytes;
  await_all([&](int peer) {
    const auto* payload = block_.member(peer).payload[sequence % 2];
    bool here = true;
    if (peer != rank() && (sender < 0 || sender == peer)) {
      for (std::size_t i = 0; i < lines; ++i) here &= payload[i].sequence.load(std::memory_order_acquire) == sequence;
    }
    // A rank that calls another operation also sends another payload.
    return posted(peer, sequence) && (here || post_of(peer).call != mine.call);
  });
  agree();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || (sender >= 0 && sender != peer)) continue;
    read_lines(payloads_.data() + kPayloadBytes * peer, block_.member(peer).payload[sequence % 2], lines);
  }
}

void Group::begin(std::optional<Seconds> timeout) {
  throw_if_broken();
  timeout_ = timeout.value_or(options_.timeout);
  sequence_.store(sequence() + 1, std::memory_order_relaxed);
}

// Called after all ranks have posted.
void Group::agree() {
  refuse_failed();
  compare_calls();
}

void Group::post(const Post& mine) {
  op_ = mine.call.op;
  waiting_since_.reset();
  auto& line = self().posts[parity()];
  line.post = mine;
  schedule_point();
  line.sequence.store(sequence(), std::memory_order_release);
}

// A rank that comes after others have given up must not act on their posts.
void Group::refuse_failed() {
  for (int peer = 0; peer < size(); ++peer) {
    const auto& member = block_.member(peer);
    const bool failed = member.presence.load(std::memory_order_acquire) == Presence::kFailed;
    if (failed && member.failed_in.load(std::memory_order_relaxed) <= sequence()) give_up(peer, "gave up", 0);
  }
}

void Group::barrier() {
  schedule_point();
  self().stage.store(++stage_, std::memory_order_release);
  await_all([this](int peer) { return block_.member(peer).stage.load(std::memory_order_acquire) >= stage_; });
}

// Every rank compares all calls with rank 0's, so that all ranks report the same first disagreement.
void Group::compare_calls() const {
  const Call& first = post_of(0).call;
  for (int peer = 1; peer < size(); ++peer) {
    const Call& theirs = post_of(peer).call;
    if (first == theirs) continue;
    const std::string one = describe(first), other = describe(theirs);
    throw CommError(CommError::Kind::kMismatch,
                    where() + ": ranks disagree: rank 0 calls " + one + ", rank " + std::to_string(peer) + " calls " +
                        other + (one == other ? " with other counts or sizes, or another reduction" : ""));
  }
}

template <class Arrived>
void Group::await_all(const Arrived& arrived) {
  for (int peer = 0; peer < size(); ++peer) {
    if (arrived(peer)) continue;
    waiter_.wait([&] { return arrived(peer); }, [&](auto waited) { give_up_if_lost(arrived, waited); }, idle_);
  }
}

// Checks all missing ranks, so that a dead rank is noticed even if another one is merely late. The timeout applies to
// the operation, not to each of its barriers.
void Group::give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited) {
  const auto now = Waiter::Clock::now();
  if (!waiting_since_) waiting_since_ = now - waited;
  const double seconds = std::chrono::duration<double>(now - *waiting_since_).count();
  int missing = -1;
  for (int peer = size() - 1; peer >= 0; --peer) {
    if (arrived(peer)) continue;
    missing = peer;
    const char* loss = loss_of(peer);
    if (loss == nullptr || arrived(peer)) continue;  // it may have arrived just before it ended
    give_up(peer, loss, seconds);
  }
  if (missing < 0 || seconds < timeout_.count()) return;
  std::ostringstream text;
  text.precision(3);
  text << where() << ": waited " << seconds << " s for rank " << missing << ", which did not come";
  fail_and_throw(CommError(CommError::Kind::kTimeout, text.str()));
}

void Group::give_up(int rank, const char* what_it_did, double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << where() << ": rank " << rank << ' ' << what_it_did << " (noticed after " << seconds << " s)";
  fail_and_throw(CommError(CommError::Kind::kPeerLost, text.str()));
}

void Group::fail_and_throw(const CommError& error) {
  fail(error);
  throw error;
}

std::string Group::where() const {
  return std::string(to_string(op_)) + " #" + std::to_string(sequence()) + " of " + options_.name + ", rank " +
         std::to_string(rank()) + " of " + std::to_string(size());
}

}  // namespace phalanx::shared_memory
