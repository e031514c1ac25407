// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/testing/fuzz/dice.h"
#include "framework/testing/fuzz/program.h"
#include "framework/testing/fuzz/schedule.h"

namespace phalanx::testing {

/// Runs a program as one rank: launches its operations, sometimes waits for one of them, chosen by the seed and the
/// rank, and compares every result with the reference.
///
/// A rank that is killed, or that gets a CommError because another one was, waits for its operations and leaves all its
/// groups.
class Player {
 public:
  Player(const Program& program, Schedule& schedule, int rank);

  /// Runs the program in the thread that has entered the schedule. Does not throw.
  void play(CommunicatorPtr world);

  /// Returns the errors found, if any. Being killed is not an error, and neither is losing a peer that was killed.
  const std::vector<std::string>& faults() const { return faults_; }
  bool finished() const { return finished_; }  // true if the whole program has run
  int at() const { return at_; }               // index of the current step

 private:
  struct Task {
    Work work;
    at::Tensor output, want;  // undefined if there is nothing to compare
    int step;
    bool is_over = false;
  };

  void play_steps();
  void take(const Step& step, Communicator& group);
  Task launch(const Step& step, Communicator& group);
  Task launch_reduction(const Step& step, Communicator& group);
  Task launch_gathering(const Step& step, Communicator& group);
  Task launch_all_to_all(const Step& step, Communicator& group);
  Task launch_body(const Step& step, const CommunicatorPtr& group);
  void launch_message(const Step& step, Communicator& group);
  void split(const Step& step, Communicator& group);
  void allocate(const Step& step, Communicator& group);

  at::Tensor keep(at::Tensor tensor);
  void add(Task task);
  void wait_for(Task& task);
  void wait_in_order(Task& task);
  void wait_for_some();
  void compare(const Task& task);
  void check_mismatches();
  void finish();
  bool is_killable() const;
  void fault(int step, const std::string& what);

  const Program& program_;
  Schedule& schedule_;
  int rank_;
  Dice dice_;
  std::vector<CommunicatorPtr> groups_;
  std::vector<Task> tasks_;
  std::vector<at::Tensor> kept_;  // kept because peers may still read them
  std::vector<std::string> faults_;
  std::vector<int> unnoticed_;  // steps with a mismatch that this rank had no need to notice
  std::vector<int> noticed_;    // steps whose operations have told of an earlier mismatch
  bool finished_ = false;
  int at_ = 0;
};

}  // namespace phalanx::testing
