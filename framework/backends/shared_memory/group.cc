// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/group.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

CommError mismatch(const std::string& where, int one, const Call& calls, int other, const Call& theirs) {
  const std::string first = describe(calls), second = describe(theirs);
  return {CommError::Kind::kMismatch,
          where + ": ranks disagree: rank " + std::to_string(one) + " calls " + first + ", rank " +
              std::to_string(other) + " calls " + second +
              (first == second ? " with other counts or sizes, another reduction, or in another way" : "")};
}

}  // namespace

Group::Group(Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric, std::function<void()> idle)
    : options_(std::move(options)),
      control_(std::move(control)),
      fabric_(std::move(fabric)),
      idle_(std::move(idle)),
      block_(control_.get(), options_.size),
      posts_(options_.size),
      calls_{},
      compared_(options_.size),
      payload_buffers_(kPayloadBytes * static_cast<std::size_t>(options_.size)),
      ring_(options_.rank, options_.size, block_.member(options_.rank).filled, block_.taken(options_.rank),
            block_.ring_data(options_.rank)),
      waiter_(options_.local_ranks > 0 ? options_.local_ranks : options_.size, options_.local_cores) {
  for (int peer = 0; peer < options_.size; ++peer) {
    rings_.emplace_back(block_.member(peer).filled, block_.taken(peer)[options_.rank], block_.ring_data(peer));
  }
}

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

void Group::begin(Op op, std::optional<Seconds> timeout) {
  throw_if_broken();
  op_ = op;
  timeout_ = timeout.value_or(options_.timeout);
  waiting_since_.reset();
  sequence_.store(sequence() + 1, std::memory_order_relaxed);
  keep_up();
}

void Group::post(const Post& mine, std::span<const std::byte> payload) {
  const std::uint64_t sequence = this->sequence();
  Post& post = posts_[rank()];
  post = mine;
  if (!payload.empty()) {
    const auto head = payload.first(std::min(Post::kHeadBytes, payload.size()));
    std::ranges::copy(head, post.head());
    write_lines(self().payload[sequence % kPayloads], payload.subspan(head.size()), sequence);
  }
  calls_[sequence % kPosts] = mine.call;
  compared_[rank()] = sequence;
  auto& line = self().posts[sequence % kPosts];
  line.post = post;
  schedule_point();
  line.sequence.store(sequence, std::memory_order_release);
  refuse_lost();
}

// Waits for ranks that are kLead operations behind, and compares their calls up to that one.
void Group::keep_up() {
  if (sequence() <= kLead) return;
  const std::uint64_t last = sequence() - kLead;
  const auto arrived = [&](int peer) { return compared_[peer] >= last || posted(peer, last); };
  await_all(arrived);
  for (int peer = 0; peer < size(); ++peer) compare_earlier(peer, last + 1);
}

// Compares the calls of a rank before call `end`, which it has posted. A difference is kept for take_late_mismatch().
void Group::compare_earlier(int peer, std::uint64_t end) {
  for (std::uint64_t call = compared_[peer] + 1; call < end; ++call) {
    const Call& theirs = line_of(peer, call).post.call;
    const Call& mine = calls_[call % kPosts];
    compared_[peer] = call;
    if (theirs == mine || late_mismatch_) continue;
    const bool first = rank() < peer;
    late_mismatch_ = mismatch(where(mine.op, call), std::min(rank(), peer), first ? mine : theirs,
                              std::max(rank(), peer), first ? theirs : mine);
  }
}

// A rank that comes after others have given up must not act on their posts. One that has left will post nothing more.
void Group::refuse_lost() {
  for (int peer = 0; peer < size(); ++peer) {
    const auto& member = block_.member(peer);
    const auto presence = member.presence.load(std::memory_order_acquire);
    if (presence == Presence::kPresent || peer == rank()) continue;
    if (presence == Presence::kFailed) {
      if (member.failed_in.load(std::memory_order_relaxed) <= sequence()) give_up(peer, "gave up", 0);
    } else if (compared_[peer] < sequence() && !posted(peer, sequence())) {
      give_up(peer, "left the group", 0);
    }
  }
}

void Group::await_posts(int from) {
  const auto is_awaited = [&](int peer) { return peer != rank() && (from == kAllRanks || from == peer); };
  await_all([&](int peer) { return !is_awaited(peer) || posted(peer, sequence()); });
  refuse_lost();
  for (int peer = 0; peer < size(); ++peer) {
    if (is_awaited(peer)) compare_with(peer);
  }
}

// Compares the call of a rank that has posted the current operation.
void Group::compare_with(int peer) {
  if (compared_[peer] == sequence()) return;
  posts_[peer] = line_of(peer, sequence()).post;
  compare_earlier(peer, sequence());
  if (posts_[peer].call != posts_[rank()].call) refuse_mismatch();
  compared_[peer] = sequence();
}

// Finds ranks that do something else while this rank waits for them, or for memory that they use.
void Group::compare_those_here() {
  for (int peer = 0; peer < size(); ++peer) {
    if (posted(peer, sequence())) compare_with(peer);
  }
}

// Every rank that finds a mismatch compares all calls with rank 0's, so that all of them report the same one.
void Group::refuse_mismatch() {
  await_all([&](int peer) { return posted(peer, sequence()); });
  refuse_lost();
  for (int peer = 0; peer < size(); ++peer) {
    posts_[peer] = line_of(peer, sequence()).post;
    compare_earlier(peer, sequence());
    compared_[peer] = sequence();
  }
  int other = 1;
  while (posts_[other].call == posts_[0].call) ++other;
  throw mismatch(where(), 0, posts_[0].call, other, posts_[other].call);
}

void Group::read_payload(int rank, std::size_t begin, std::size_t bytes, std::byte* to) {
  if (bytes == 0) return;
  if (begin < Post::kHeadBytes) {
    const std::size_t here = std::min(bytes, Post::kHeadBytes - begin);
    std::memcpy(to, posts_[rank].head() + begin, here);
    to += here, begin += here, bytes -= here;
  }
  if (bytes == 0) return;
  const auto* lines = block_.member(rank).payload[sequence() % kPayloads];
  read_lines(to, lines, begin - Post::kHeadBytes, bytes, sequence(),
             [&](const auto& here) { await(here, [&](int peer) { return peer != rank || here(); }); });
}

bool Group::has_finished(int peer, std::uint64_t sequence) const {
  return compared_[peer] > sequence || line_of(peer, sequence + 1).sequence.load(std::memory_order_acquire) > sequence;
}

// A rank that has finished the current operation without taking this rank's pieces has called something else.
bool Group::ring_has_room() {
  return ring_.has_room([this](int peer, std::uint64_t operation) {
    if (!has_finished(peer, operation)) return false;
    if (operation == sequence()) compare_with(peer);
    return true;
  });
}

std::uint64_t Group::begin_in_ring(int rank) const {
  const Location& input = posts_[rank].input;
  return is_ring(input) ? input.offset : block_.member(rank).begins[sequence() % kPosts];
}

std::uint64_t Group::first_piece_of(int rank) {
  const std::uint64_t first = begin_in_ring(rank);
  if (posts_[rank].input.region == kRingBegun) rings_[rank].set_filled(first + 1);
  return first;
}

void Group::mark_finished() {
  schedule_point();
  self().finished.store(sequence(), std::memory_order_release);
}

void Group::await_finished(int from) {
  await_all([&](int peer) {
    return (from != kAllRanks && from != peer) ||
           block_.member(peer).finished.load(std::memory_order_acquire) >= sequence();
  });
}

void Group::barrier() {
  schedule_point();
  self().stage.store(++stage_, std::memory_order_release);
  await_all([this](int peer) { return block_.member(peer).stage.load(std::memory_order_acquire) >= stage_; });
}

template <class Arrived>
void Group::await_all(const Arrived& arrived) {
  for (int peer = 0; peer < size(); ++peer) {
    if (arrived(peer)) continue;
    waiter_.wait([&] { return arrived(peer); }, [&](auto waited) { give_up_if_lost(arrived, waited); }, idle_);
  }
}

// Checks all missing ranks, so that a dead rank is noticed even if another one is merely late. The timeout applies to
// the operation, not to each of its waits.
void Group::give_up_if_lost(const std::function<bool(int)>& arrived, Waiter::Clock::duration waited) {
  const auto now = Waiter::Clock::now();
  if (!waiting_since_) waiting_since_ = now - waited;
  const double seconds = std::chrono::duration<double>(now - *waiting_since_).count();
  int missing = -1;
  for (int peer = size() - 1; peer >= 0; --peer) {
    if (arrived(peer)) continue;
    if (missing < 0 || progress_of(peer) <= progress_of(missing)) missing = peer;
    const char* loss = loss_of(peer);
    if (loss == nullptr || arrived(peer)) continue;  // it may have arrived just before it ended
    give_up(peer, loss, seconds);
  }
  if (options_.check) options_.check();
  if (missing < 0 || seconds < timeout_.count()) return;
  std::ostringstream text;
  text.precision(3);
  text << where() << ": waited " << seconds << " s for rank " << missing << ", which did not come";
  fail_and_throw(CommError(CommError::Kind::kTimeout, text.str()));
}

// Returns how far a rank has come in the current operation: the pieces in its ring if there are any, otherwise only
// whether it has posted. If one rank stops, those that wait for it stop later.
std::int64_t Group::progress_of(int peer) const {
  if (compared_[peer] < sequence()) return posted(peer, sequence()) ? 0 : -1;
  return static_cast<std::int64_t>(block_.member(peer).filled.pieces.load(std::memory_order_relaxed) -
                                   begin_in_ring(peer));
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

std::string Group::where(Op op, std::uint64_t sequence) const {
  return std::string(to_string(op)) + " #" + std::to_string(sequence) + " of " + options_.name + ", rank " +
         std::to_string(rank()) + " of " + std::to_string(size());
}

}  // namespace phalanx::shared_memory
