// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/messages.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "framework/backends/shared_memory/keep_until_exit.h"
#include "framework/backends/shared_memory/message_queues.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

// Slots that one poll fills or empties for a peer before it turns to the other direction.
constexpr std::uint64_t kSlotsPerPoll = 4;
// A rank that waits for a message looks for those of other groups less often.
constexpr int kPollsPerPollOfAll = 8;

}  // namespace

Messages::Messages(Group& group)
    : group_(group),
      direct_region_(group.fabric().reaches_everything() ? kEverywhere
                     : group.fabric().fetches()          ? kFetched
                                                         : 0),
      waiter_(group.options().local_ranks > 0 ? group.options().local_ranks : group.size(),
              group.options().local_cores),
      to_(group.size()),
      from_(group.size()) {}

Messages::~Messages() = default;

void Messages::send(const TransferPtr& transfer) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  to_[transfer->peer()].waiting.push_back(transfer);
  move_or_abandon([&] { fill_slots(transfer->peer(), Channel::kSlots); });
}

void Messages::recv(const TransferPtr& transfer) {
  const std::lock_guard lock(mutex_);
  ++in_progress_;
  auto& from = from_[transfer->peer()];
  const auto found = std::ranges::find_if(
      from.unexpected, [&](const auto& message) { return message->tag == transfer->tag() && !message->receiver; });
  if (found == from.unexpected.end()) {
    from.posted.push_back(transfer);
    move_or_abandon([&] { empty_slots(transfer->peer(), kSlotsPerPoll); });
    return;
  }
  (*found)->receiver = transfer;
  if ((*found)->complete()) end(from, **found);
}

// If the group is broken, or there is no memory for an unexpected message, every transfer fails with that error.
template <class Move>
void Messages::move_or_abandon(const Move& move) {
  try {
    group_.throw_if_broken();
    move();
  } catch (const CommError& error) {
    group_.fail_between_calls(error);
    abandon_all();
  } catch (const std::exception& error) {
    group_.fail_between_calls(
        CommError(CommError::Kind::kSystem, "messages of " + group_.name() + ": " + error.what()));
    abandon_all();
  } catch (...) {
    group_.fail_between_calls(CommError(CommError::Kind::kSystem, "messages of " + group_.name() + " ended"));
    abandon_all();
    throw;
  }
}

void Messages::poll() {
  if (in_progress_.load(std::memory_order_relaxed) == 0) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) move_or_abandon([this] { poll_locked(); });
}

void Messages::poll_locked() {
  for (int peer = 0; peer < group_.size(); ++peer) {
    fill_slots(peer, kSlotsPerPoll);
    empty_slots(peer, kSlotsPerPoll);
  }
}

void Messages::complete(Transfer& transfer, std::exception_ptr error) {
  transfer.complete(std::move(error));
  --in_progress_;
}

void Messages::await(Transfer& transfer, const std::function<void()>& poll_all) {
  int asked = 0;
  const auto ready = [&] {
    if (transfer.done()) return true;
    poll();
    if (++asked % kPollsPerPollOfAll == 0 || scheduled()) poll_all();
    return transfer.done() || group_.broken();
  };
  bool recorded = false;
  waiter_.wait(ready, [&](auto waited) {
    if (!std::exchange(recorded, true)) record_wait(transfer);
    give_up_if_lost(transfer, std::chrono::duration<double>(waited).count());
  });
  if (transfer.done()) return;
  const std::lock_guard lock(mutex_);
  abandon_all();
}

void Messages::abandon(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  move_or_abandon([this] { poll_locked(); });  // it may be there already
  if (transfer.done()) return;
  group_.fail_between_calls(abandoned(describe(transfer)));
  abandon_all();
}

void Messages::record_wait(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  if (!transfer.done()) transfer.recorder->started(transfer.ticket);
}

void Messages::give_up_if_lost(Transfer& transfer, double seconds) {
  const char* loss = group_.loss_of(transfer.peer());
  const bool late = seconds >= group_.options().timeout.count();
  if (loss == nullptr && !late) return call_check();
  {
    const std::lock_guard lock(mutex_);
    // Before it ended, the peer may have sent this message, or taken all of it.
    empty_slots(transfer.peer(), Channel::kSlots);
    fill_slots(transfer.peer(), Channel::kSlots);
    complete_received(transfer.peer());
    if (transfer.done()) return;
  }
  std::ostringstream text;
  text.precision(3);
  text << describe(transfer) << ": ";
  if (loss != nullptr) {
    text << "rank " << transfer.peer() << ' ' << loss << " (noticed after " << seconds << " s)";
  } else {
    text << "waited " << seconds << " s for rank " << transfer.peer();
  }
  group_.fail_between_calls(
      CommError(loss != nullptr ? CommError::Kind::kPeerLost : CommError::Kind::kTimeout, text.str()));
}

void Messages::call_check() {
  const auto& check = group_.options().check;
  if (!check) return;
  try {
    check();
  } catch (const CommError& error) {
    group_.fail_between_calls(error);
  }
}

// The group is broken, so missing messages will never arrive.
void Messages::abandon_all() {
  std::exception_ptr error;
  try {
    group_.throw_if_broken();
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& to : to_) {
    for (auto* sent : {&to.direct, &to.partly_fetched}) {
      for (auto& [transfer, number] : std::exchange(*sent, {})) {
        keep_until_exit(transfer->tensor());
        complete(*transfer, error);
      }
    }
    for (auto& transfer : std::exchange(to.waiting, {})) complete(*transfer, error);
  }
  for (auto& from : from_) {
    for (auto& transfer : std::exchange(from.posted, {})) complete(*transfer, error);
    if (from.current && from.current->receiver) {
      complete(*from.current->receiver, error);
      from.current->discard = true;
      from.current->receiver = nullptr;
    }
  }
}

std::string Messages::describe(const Transfer& transfer) const {
  return phalanx::describe(transfer.call()) + " #" + std::to_string(transfer.ticket.sequence) + " of " + group_.name() +
         ", rank " + std::to_string(group_.rank()) + " of " + std::to_string(group_.size());
}

}  // namespace phalanx::shared_memory
