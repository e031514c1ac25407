// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/survivors.h"

#include <chrono>
#include <string>

#include "framework/backends/shared_memory/waiter.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

class SurvivorVote {
 public:
  SurvivorVote(Group& group, const std::function<void()>& idle)
      : group_(group),
        block_(group.block()),
        idle_(idle),
        waiter_(group.options().local_ranks, group.options().local_cores) {}

  Survivors run() {
    for (int round = 0; round < group_.size(); ++round) {
      block_.member(group_.rank()).round.store(round + 1, std::memory_order_release);
      const auto memory = publish_or_find(round);
      const bool aborted = block_.ballot(round).state.load(kAcquire) == Ballot::kAborted;
      if (!aborted && block_.vote(round, group_.rank()).survives.load(std::memory_order_relaxed) == 0) throw_too_late();
      const bool committed = memory != nullptr && decide(round);
      group_.fabric().release();
      if (committed) return {members(round), memory};
    }
    throw CommError(CommError::Kind::kPeerLost, where() + "ranks kept ending until no rounds were left");
  }

 private:
  static constexpr auto kAcquire = std::memory_order_acquire;

  bool gone(int rank) const {
    return block_.member(rank).gone.load(kAcquire) != 0 || (rank != group_.rank() && !group_.fabric().alive(rank));
  }

  bool has_arrived(int round, int rank) const {
    return block_.member(rank).round.load(kAcquire) > static_cast<std::uint32_t>(round);
  }

  bool all_have_arrived(int round) const {
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (!has_arrived(round, rank) && !gone(rank)) return false;
    }
    return true;
  }

  // Blocks until ready() returns true. Returns false if the group's timeout passes first.
  template <class Ready>
  bool wait_for(const Ready& ready) const {
    bool in_time = true;
    waiter_.wait([&] { return !in_time || ready(); }, [&](auto waited) { in_time = waited < group_.options().timeout; },
                 idle_);
    return in_time;
  }

  // Returns after the ballot is published or aborted. Returns the new group's memory, or null if the ballot is aborted
  // or the memory cannot be opened because its owner is gone.
  std::shared_ptr<void> publish_or_find(int round) const {
    Ballot& ballot = block_.ballot(round);
    wait_for([&] { return ballot.state.load(kAcquire) >= Ballot::kPublished || all_have_arrived(round); });
    // The rank that counts may end before it publishes; then another one counts.
    const auto is_free = [&](std::uint32_t state) {
      return state == Ballot::kOpen || (state < Ballot::kPublished && gone(static_cast<int>(state) - 1));
    };
    auto state = ballot.state.load(kAcquire);
    while (state < Ballot::kPublished) {
      if (is_free(state) &&
          ballot.state.compare_exchange_strong(state, 1 + static_cast<std::uint32_t>(group_.rank()))) {
        return publish(round);
      }
      const bool in_time = wait_for([&] {
        state = ballot.state.load(kAcquire);
        return state >= Ballot::kPublished || is_free(state);
      });
      // The rank that counts may be stopped. The next round counts without it.
      if (!in_time && ballot.state.compare_exchange_strong(state, Ballot::kAborted)) return nullptr;
    }
    if (state == Ballot::kAborted) return nullptr;
    std::shared_ptr<void> memory;
    try {
      memory = group_.fabric().open(ballot.memory);
    } catch (const CommError&) {
      abort(ballot);
    }
    return memory;
  }

  std::shared_ptr<void> publish(int round) const {
    Ballot& ballot = block_.ballot(round);
    int survivors = 0;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const bool survives = has_arrived(round, rank) && !gone(rank);
      block_.vote(round, rank).survives.store(survives ? 1 : 0, std::memory_order_relaxed);
      survivors += survives ? 1 : 0;
    }
    const auto made = group_.fabric().create(ControlBlock::bytes(survivors));
    ballot.memory = made.handle;
    schedule_point();
    auto state = 1 + static_cast<std::uint32_t>(group_.rank());
    const bool in_time = ballot.state.compare_exchange_strong(state, Ballot::kPublished);
    return in_time ? made.memory : nullptr;
  }

  static void abort(Ballot& ballot) {
    auto state = Ballot::kPublished;
    ballot.state.compare_exchange_strong(state, Ballot::kAborted);
  }

  // Returns true if the ballot is committed. This rank survives in it and has opened the memory.
  bool decide(int round) const {
    Ballot& ballot = block_.ballot(round);
    block_.vote(round, group_.rank()).ready.store(1, std::memory_order_release);
    schedule_point();
    const auto decided = [&] { return ballot.state.load(kAcquire) != Ballot::kPublished; };
    const bool in_time = wait_for([&] { return decided() || advance(round); });
    if (!in_time) abort(ballot);
    return ballot.state.load(kAcquire) == Ballot::kCommitted;
  }

  // Decides a published ballot if possible, and returns true if it is decided.
  bool advance(int round) const {
    Ballot& ballot = block_.ballot(round);
    bool all_ready = true;
    for (const int rank : members(round)) {
      if (block_.vote(round, rank).ready.load(kAcquire) != 0) continue;
      all_ready = false;
      if (!gone(rank)) continue;
      abort(ballot);
      return true;
    }
    if (!all_ready) return false;
    auto state = Ballot::kPublished;
    ballot.state.compare_exchange_strong(state, Ballot::kCommitted);
    return true;
  }

  std::vector<int> members(int round) const {
    std::vector<int> members;
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (block_.vote(round, rank).survives.load(std::memory_order_relaxed) != 0) members.push_back(rank);
    }
    return members;
  }

  [[noreturn]] void throw_too_late() const {
    throw CommError(CommError::Kind::kPeerLost, where() + "the others waited " +
                                                    std::to_string(group_.options().timeout.count()) +
                                                    " s for this rank and have continued without it");
  }

  std::string where() const {
    return "shrink of " + group_.name() + ", rank " + std::to_string(group_.rank()) + " of " +
           std::to_string(group_.size()) + ": ";
  }

  Group& group_;
  const ControlBlock& block_;
  const std::function<void()>& idle_;
  Waiter waiter_;
};

}  // namespace

Survivors agree_on_survivors(Group& group, const std::function<void()>& idle) {
  group.fail_between_calls(CommError(CommError::Kind::kPeerLost, "rank " + std::to_string(group.rank()) + " of " +
                                                                     group.name() + " has called shrink"));
  return SurvivorVote(group, idle).run();
}

}  // namespace phalanx::shared_memory
