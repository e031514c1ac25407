// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "framework/comm/store/store.h"
#include "framework/observe/hang/picture.h"

namespace phalanx {

/// Finds the rank for which the others regularly wait (slow_rank()), although no operation takes long. A single look
/// may fall into an evaluation or a checkpoint, so several looks in a row must find the same rank. Each look judges the
/// operations that no earlier look has judged; without at least kLeastOperations of them, it leaves them to the next
/// look. Each rank is named once.
///
/// A look reads the pages of all ranks, so there are fewer of them if there are many ranks. If some ranks are on other
/// hosts, whose last operations are not known here, there are no further looks. Not thread-safe.
class SlowRankWatch {
 public:
  /// `within`: the time after which a rank that has become slow is named if there are few ranks and operations are
  /// frequent enough for every look. `picture` collects what is known of the ranks.
  SlowRankWatch(int size, Seconds within, std::function<JobPicture()> picture);

  /// Looks at the ranks if it is time; `now` is in seconds. Returns the sentence to print if a slow rank has been
  /// found.
  std::optional<std::string> look(double now);

 private:
  bool can_know_all(const JobPicture& job) const;
  std::uint64_t keep_new_operations(JobPicture& job) const;

  const int size_;
  const double interval_;
  std::function<JobPicture()> picture_;
  bool ended_ = false;
  double next_ = 0;                 // time of the next look
  std::uint64_t judged_ = 0;        // sequence number of the last operation of "world" that a look has judged
  std::optional<int> suspected_{};  // by the last look
  int in_a_row_ = 0;                // looks that have suspected it
  std::set<int> named_{};
};

}  // namespace phalanx
