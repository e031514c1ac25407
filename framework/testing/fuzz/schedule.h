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

/// Thrown to end a rank in the middle of an operation.
class Killed : public std::runtime_error {
 public:
  Killed() : std::runtime_error("killed by the schedule") {}
};

/// Defines which rank is killed, how, and after how many of its schedule points.
struct Kill {
  enum class Mode {
    kInOperation,        // a schedule point throws Killed as soon as the rank is killable
    kBetweenOperations,  // the rank calls is_to_leave() and then leaves its groups
  };
  int rank = 0;
  std::uint64_t after = 0;
  Mode mode = Mode::kInOperation;
};

/// Decides from a seed which of several threads, the ranks, runs next. Exactly one runs at a time, and at every
/// schedule point (framework/backends/shared_memory/schedule_point.h) it hands over to a randomly chosen one. Sometimes
/// a rank sleeps for a while, to simulate a slow rank. A seed therefore determines one order of all interactions
/// between ranks, independently of the machine.
///
/// The thread of a rank calls enter(), which returns once all ranks have entered and it is this rank's turn, and
/// finally leave(). In between, it must not block on another rank except at schedule points. Data shared by the threads
/// under a schedule needs no lock.
class Schedule {
 public:
  /// Calls `on_hang` and aborts the process if no rank has reported progress for `max_idle_points` points.
  Schedule(std::uint64_t seed, int ranks, std::optional<Kill> kill, std::function<void()> on_hang,
           std::uint64_t max_idle_points = 100'000);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  void enter(int rank);
  void leave();

  /// Reports that the running rank has made progress, and sets whether it may be killed from now on.
  void progress(bool killable);
  bool is_to_leave();

  int killed() const { return killed_; }  // rank that was killed; -1: none so far
  std::uint64_t points() const { return points_; }
  std::uint64_t trace() const { return trace_; }  // hash of all decisions

 private:
  struct Rank;

  static void at_schedule_point();
  void point();
  int choose();
  void switch_to(int rank);

  Dice dice_;
  std::optional<Kill> kill_;
  std::function<void()> on_hang_;
  std::uint64_t max_idle_points_;
  int steadiness_;  // a rank continues with odds of 1 to steadiness_
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<int> entered_{0};
  int running_ = 0;
  std::uint64_t points_ = 0, trace_ = 0, quiet_ = 0;
  int killed_ = -1;
};

}  // namespace phalanx::testing
