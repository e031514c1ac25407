// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/operations/call.h"

namespace phalanx::testing {

/// An operation that the ranks of a group perform together.
struct Step {
  Op op = Op::kBarrier;
  int group = 0;              // index into Program::groups
  std::int64_t elements = 0;  // size of one rank's part
  bool uneven = false;        // the sizes of the parts increase with the rank
  at::ScalarType dtype = at::kFloat;
  Reduction reduction;
  int root = 0;             // rank in the group; the sender of a message
  int receiver = 0;         // receiver of a message
  int tag = 0;              // tag of a message
  int odd_one = -1;         // rank that passes one element more than the others, which is a mismatch
  std::vector<int> colors;  // for a split: color of each rank
  int first_child = 0;      // for a split: index of the group of color 0
};

/// A random program for several ranks: the operations that they launch, and the groups. It is the same for all ranks,
/// but each rank decides itself when to wait. A pure function of the seed.
struct Program {
  explicit Program(std::uint64_t seed);

  std::uint64_t seed;
  int ranks;
  std::vector<std::vector<int>> groups;  // world ranks of each group; the first group is the world
  std::vector<Step> steps;
};

/// Returns a text such as "all_reduce(sum) of 1000 Float on group 2".
std::string describe(const Step& step);

/// Returns the number of elements of `rank`'s part in a step.
std::int64_t part_of(const Step& step, int rank);

}  // namespace phalanx::testing
