// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/call.h"

namespace phalanx::testing {

/// What the ranks of a group do together.
struct Step {
  Op op = Op::kBarrier;
  int group = 0;              // of Program::groups
  std::int64_t elements = 0;  // of one rank's part
  bool uneven = false;        // the parts grow with the rank
  at::ScalarType dtype = at::kFloat;
  Reduction reduction;
  int root = 0;             // of the group; the sender of a message
  int receiver = 0;         // of a message
  int tag = 0;              // of a message
  int odd_one = -1;         // a rank that asks for one element more than all others: a mismatch
  std::vector<int> colors;  // of each rank, in a split
  int first_child = 0;      // the group that color 0 of a split becomes
};

/// A random program for several ranks: which operations they launch on which groups, the same for all of them. When
/// each rank waits for what is up to it. A pure function of the seed.
struct Program {
  explicit Program(std::uint64_t seed);

  std::uint64_t seed;
  int ranks;
  std::vector<std::vector<int>> groups;  // the world's ranks of each group; the first is the world
  std::vector<Step> steps;
};

/// "all_reduce(sum) of 1000 Float on group 2".
std::string describe(const Step& step);

/// Elements of `rank`'s part in a step.
std::int64_t part_of(const Step& step, int rank);

}  // namespace phalanx::testing
