// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fuzz/program.h"

#include <array>
#include <numeric>

#include "framework/testing/fuzz/dice.h"
#include "framework/testing/reference.h"

namespace phalanx::testing {
namespace {

// All operations. Those that can go wrong in more ways occur more often.
constexpr std::array kOps{Op::kBroadcast,      Op::kBroadcast, Op::kReduce,    Op::kReduce,        Op::kAllReduce,
                          Op::kAllReduce,      Op::kAllReduce, Op::kAllReduce, Op::kReduceScatter, Op::kReduceScatter,
                          Op::kAllGather,      Op::kAllGather, Op::kGather,    Op::kScatter,       Op::kAllToAll,
                          Op::kAllToAll,       Op::kSend,      Op::kSend,      Op::kSend,          Op::kSend,
                          Op::kSend,           Op::kSend,      Op::kBarrier,   Op::kSplit,         Op::kAllocate,
                          Op::kAllocateShared, Op::kCustom};
// Sizes that travel with the call, sizes around a piece in a ring or message, and sizes of many pieces.
constexpr std::array<std::int64_t, 8> kElements{0, 1, 2, 7, 64, 1000, 5000, 70'000};
constexpr int kMaxGroups = 6;

template <class T, std::size_t kSize>
T one_of(Dice& dice, const std::array<T, kSize>& all) {
  return dice.one_of(std::span<const T>(all));
}

bool may_mismatch(Op op) { return op == Op::kBroadcast || op == Op::kReduce || op == Op::kAllReduce; }

std::int64_t draw_elements(Dice& dice) {
  const auto elements = one_of(dice, kElements);
  return elements < 5000 || dice.once_in(3) ? elements : 100;  // fewer long operations, to save time
}

Step draw_step(Dice& dice, const std::vector<std::vector<int>>& groups) {
  Step step;
  do {
    step.group = dice.below(static_cast<int>(groups.size()));
  } while (groups[step.group].empty());  // a color that no rank chose
  const int size = static_cast<int>(groups[step.group].size());
  step.op = one_of(dice, kOps);
  step.elements = draw_elements(dice);
  step.uneven = dice.once_in(2);
  step.dtype = dice.one_of(all_dtypes());
  const auto reductions = reductions_of(step.dtype);
  step.reduction = reductions[dice.below(static_cast<int>(reductions.size()))];
  step.root = dice.below(size);
  step.receiver = dice.below(size);
  step.tag = dice.below(3);
  if (size > 1 && may_mismatch(step.op) && dice.once_in(12)) step.odd_one = dice.below(size);
  return step;
}

// Adds the groups that a split creates.
void add_children(Dice& dice, Step& step, std::vector<std::vector<int>>& groups) {
  const auto parent = groups[step.group];
  step.first_child = static_cast<int>(groups.size());
  groups.resize(groups.size() + 2);
  for (const int rank : parent) {
    const int color = dice.once_in(6) ? -1 : dice.below(2);
    step.colors.push_back(color);
    if (color >= 0) groups[step.first_child + color].push_back(rank);
  }
}

}  // namespace

Program::Program(std::uint64_t seed) : seed(seed) {
  Dice dice(mix(seed, 0xb09));
  ranks = 2 + dice.below(dice.once_in(8) ? 5 : 3);
  groups.emplace_back(ranks);
  std::iota(groups[0].begin(), groups[0].end(), 0);
  const int count = 4 + dice.below(16);
  while (static_cast<int>(steps.size()) < count) {
    auto step = draw_step(dice, groups);
    if (step.op == Op::kSplit) {
      if (groups.size() >= kMaxGroups) continue;
      add_children(dice, step, groups);
    }
    steps.push_back(std::move(step));
  }
}

std::int64_t part_of(const Step& step, int rank) {
  return step.uneven ? step.elements / (rank + 1) + (rank % 3 == 1 ? 0 : rank) : step.elements;
}

std::string describe(const Step& step) {
  const Call call{.elements = step.elements,
                  .peer = step.op == Op::kSend ? step.receiver : step.root,
                  .tag = step.tag,
                  .op = step.op,
                  .dtype = step.op == Op::kBarrier || step.op == Op::kSplit ? at::ScalarType::Undefined : step.dtype,
                  .reduction = step.reduction.kind()};
  std::string text = phalanx::describe(call);
  if (step.op == Op::kSend) text += " from " + std::to_string(step.root);
  if (step.uneven) text += ", uneven,";
  if (step.odd_one >= 0) text += ", but of rank " + std::to_string(step.odd_one) + ",";
  return text + " on group " + std::to_string(step.group);
}

}  // namespace phalanx::testing
