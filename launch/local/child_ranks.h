// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/local/launch_local.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// Starts the processes of a job on this host, each with the environment, the output and the log of its rank, and knows
/// their numbers in the job. Not thread-safe.
class ChildRanks {
 public:
  /// `folder` is one of this host: for the rendezvous, and for failures that cannot be written to the log folder. The
  /// other arguments must outlive the object.
  ChildRanks(const LocalLaunch& options, std::string folder, const std::function<int(int rank)>& body)
      : options_(options), folder_(std::move(folder)), body_(body) {}

  /// Starts the ranks with which the job begins. Throws Error.
  void start_all(Supervisor& supervisor);

  /// Starts a newcomer. Throws Error.
  void start(const Newcomer& newcomer, Supervisor& supervisor) { start(newcomer.number, newcomer, supervisor); }

  /// Returns the number in the job of a child of the supervisor.
  int number_of(int child) const { return numbers_.at(static_cast<std::size_t>(child)); }

  /// Returns the path of the meeting folder of the job.
  const std::string& meeting_folder() const {
    return options_.meeting_folder.empty() ? folder_ : options_.meeting_folder;
  }

 private:
  void start(int rank, const std::optional<Newcomer>& newcomer, Supervisor& supervisor);
  int run(int rank, const std::optional<Newcomer>& newcomer) const;
  void set_environment(int rank) const;

  const LocalLaunch& options_;
  const std::string folder_;
  const std::function<int(int rank)>& body_;
  std::vector<int> numbers_{};  // of the children, in the order of their start
};

}  // namespace phalanx
