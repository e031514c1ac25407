// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace phalanx::regress {

enum class Judgement { kGood, kBad, kUnknown };

/// The search for the first bad one in a sequence of commits, of which the first is good and the last is bad.
class Bisection {
 public:
  explicit Bisection(std::size_t commits);  // at least 2

  /// Returns the commit to judge next: the one nearest to the middle between the last good and the first bad one that
  /// has not been judged. Returns nullopt if no such commit is left.
  std::optional<std::size_t> next() const;

  /// Records the judgement of a commit that next() has returned. kUnknown: it could not be built or measured.
  void record(std::size_t commit, Judgement judgement);

  std::size_t last_good() const { return last_good_; }

  /// Returns the first commit known to be bad. If next() returns nullopt, all commits between last_good() and it are
  /// unknown.
  std::size_t first_bad() const { return first_bad_; }

  /// Returns the number of judgements that are still needed if none is unknown.
  int steps_left() const;

 private:
  std::vector<bool> unknown_;
  std::size_t last_good_ = 0, first_bad_;
};

/// Values of a metric that were measured in turns: the values of each round follow each other in time.
struct Samples {
  std::vector<double> good, bad;
};

/// Returns true if a bisection makes sense: the medians differ by at least `least` of the good one, and in at least
/// three quarters of the rounds the two differ in the same direction.
bool are_separate(const Samples& ends, double least);

/// Judges a commit by the median of its values: it belongs to the end whose median is nearer.
Judgement judge_commit(const Samples& ends, const std::vector<double>& candidate);

}  // namespace phalanx::regress
