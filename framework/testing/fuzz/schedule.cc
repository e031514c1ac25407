// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fuzz/schedule.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "framework/backends/shared_memory/schedule_point.h"

namespace phalanx::testing {
namespace {

constexpr std::array kSteadiness{1, 2, 8};
constexpr int kPauses = 50;           // one point in kPauses puts a rank to sleep
constexpr int kLongestPauseBits = 8;  // a sleep lasts less than 2^kLongestPauseBits points

// The schedule that this thread has entered.
thread_local Schedule* current = nullptr;

}  // namespace

struct Schedule::Rank {
  std::binary_semaphore turn{0};
  bool here = true;
  bool killable = false;
  std::uint64_t points = 0;
  std::uint64_t asleep_until = 0;
};

Schedule::Schedule(std::uint64_t seed, int ranks, std::optional<Kill> kill, std::function<void()> on_hang,
                   std::uint64_t max_idle_points)
    : dice_(mix(seed, 0x5c4ed)),
      kill_(kill),
      on_hang_(std::move(on_hang)),
      max_idle_points_(max_idle_points),
      steadiness_(dice_.one_of(std::span<const int>(kSteadiness))) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>());
  shared_memory::set_schedule_point(&Schedule::at_schedule_point);
}

Schedule::~Schedule() { shared_memory::set_schedule_point(nullptr); }

void Schedule::at_schedule_point() {
  if (current != nullptr) current->point();
}

void Schedule::enter(int rank) {
  current = this;
  if (entered_.fetch_add(1) + 1 == static_cast<int>(ranks_.size())) switch_to(choose());
  ranks_[rank]->turn.acquire();
}

void Schedule::leave() {
  current = nullptr;
  ranks_[running_]->here = false;
  if (const int next = choose(); next >= 0) switch_to(next);
}

void Schedule::switch_to(int rank) {
  running_ = rank;
  ranks_[rank]->turn.release();
}

void Schedule::point() {
  ++points_;
  Rank& me = *ranks_[running_];
  ++me.points;
  if (++quiet_ > max_idle_points_) {
    on_hang_();
    std::abort();
  }
  const int mine = running_, next = choose();
  trace_ = mix(trace_, static_cast<std::uint64_t>(next));
  if (next != mine) {
    switch_to(next);
    me.turn.acquire();
  }
  if (!me.killable || killed_ >= 0 || !kill_ || kill_->mode != Kill::Mode::kInOperation) return;
  if (kill_->rank != mine || me.points < kill_->after) return;
  killed_ = mine;
  throw Killed();
}

// Returns the next rank to run, or -1 if all have left.
int Schedule::choose() {
  if (dice_.once_in(kPauses)) {
    auto& one = *ranks_[dice_.below(static_cast<int>(ranks_.size()))];
    one.asleep_until = points_ + (std::uint64_t{1} << dice_.below(kLongestPauseBits));
  }
  std::vector<int> awake;
  int first_up = -1;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (!ranks_[rank]->here) continue;
    if (ranks_[rank]->asleep_until <= points_) awake.push_back(rank);
    if (first_up < 0 || ranks_[rank]->asleep_until < ranks_[first_up]->asleep_until) first_up = rank;
  }
  if (awake.empty()) return first_up;
  const bool goes_on = ranks_[running_]->here && ranks_[running_]->asleep_until <= points_;
  if (goes_on && !dice_.once_in(steadiness_)) return running_;
  return dice_.one_of(std::span<const int>(awake));
}

void Schedule::progress(bool killable) {
  quiet_ = 0;
  ranks_[running_]->killable = killable;
}

bool Schedule::is_to_leave() {
  if (killed_ >= 0 || !kill_ || kill_->mode != Kill::Mode::kBetweenOperations || kill_->rank != running_) return false;
  if (ranks_[running_]->points < kill_->after) return false;
  killed_ = running_;
  return true;
}

}  // namespace phalanx::testing
