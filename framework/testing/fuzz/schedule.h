// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <vector>

#include "framework/testing/fuzz/dice.h"

namespace phalanx::testing {

/// Ends a rank in the midst of what it does.
class Killed : public std::runtime_error {
 public:
  Killed() : std::runtime_error("killed by the schedule") {}
};

/// When a rank is ended, by the schedule points that it has passed.
struct Kill {
  enum class Way {
    kInOperation,        // Killed comes out of a schedule point, once the rank is killable there
    kBetweenOperations,  // the rank asks is_to_leave(), and leaves like one that has lost interest
  };
  int rank = 0;
  std::uint64_t after = 0;
  Way way = Way::kInOperation;
};

/// Decides from a seed which of several threads, the ranks, goes on: exactly one runs at a time, and at every schedule
/// point (framework/backends/shared_memory/schedule_point.h) it hands over to one that is drawn. Some fall asleep for a
/// while: a rank that is late. So one seed is one order of all that ranks do to each other, whatever the machine does.
///
/// A rank's thread calls enter(), which returns when all have entered and it is this one's turn, and leave() at its
/// end. In between it must not block on another rank but at schedule points. What the threads share under a schedule
/// needs no lock.
class Schedule {
 public:
  /// `on_hang` tells the user; then the process aborts. It is called when no rank has reported progress for
  /// `patience` points.
  Schedule(std::uint64_t seed, int ranks, std::optional<Kill> kill, std::function<void()> on_hang,
           std::uint64_t patience = 100'000);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  void enter(int rank);
  void leave();

  /// The running rank came a step further, and may be killed from now on, or not.
  void progress(bool killable);
  bool is_to_leave();

  int killed() const { return killed_; }  // the rank; -1: none so far
  std::uint64_t points() const { return points_; }
  std::uint64_t trace() const { return trace_; }  // a hash of all decisions

 private:
  struct Rank;

  static void at_schedule_point();
  void point();
  int choose();
  void hand_over_to(int rank);

  Dice dice_;
  std::optional<Kill> kill_;
  std::function<void()> on_hang_;
  std::uint64_t patience_;
  int steadiness_;  // a rank goes on with the odds of 1 to this
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<int> entered_{0};
  int running_ = 0;
  std::uint64_t points_ = 0, trace_ = 0, quiet_ = 0;
  int killed_ = -1;
};

}  // namespace phalanx::testing
