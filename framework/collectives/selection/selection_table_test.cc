// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/collectives/selection/resolved_table.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Returns the candidates that a table has for a size, in order: "counting", "native on mpi", ...
std::vector<std::string> candidates(const SelectionTable& table, Op op, std::int64_t bytes,
                                    ResolvedTable::Group group = {.ranks = 4}, c10::DeviceType device = c10::kCPU) {
  const std::vector<std::string> backends{"mpi"};
  const ResolvedTable resolved(table, group, backends);
  std::vector<std::string> names;
  for (const auto& candidate : resolved.find(op, bytes, device)) {
    names.push_back((candidate.algorithm == nullptr ? kNative : candidate.algorithm->name) +
                    (candidate.backend < 0 ? "" : " on " + backends[static_cast<std::size_t>(candidate.backend)]));
  }
  return names;
}

using Ways = std::vector<std::string>;

SelectionTable by_size() {
  return SelectionTable{{.op = "all_reduce", .up_to = "64KB", .algorithm = "counting"},
                        {.op = "broadcast", .algorithm = "counting_broadcast"},
                        {.op = "all_reduce", .up_to = "1MB", .algorithm = "counting_even"},
                        {.op = "all_reduce", .up_to = "4MB", .backend = "mpi"}};
}

TEST(SelectionTable, TheFirstRuleThatMatchesComesFirst) {
  const auto table = by_size();
  EXPECT_EQ(candidates(table, Op::kAllReduce, 0).front(), "counting");
  EXPECT_EQ(candidates(table, Op::kAllReduce, 1 << 20).front(), "counting_even");
  EXPECT_EQ(candidates(table, Op::kAllReduce, 4 << 20), (Ways{"native on mpi"}));
  EXPECT_EQ(candidates(table, Op::kBroadcast, 1LL << 40), (Ways{"counting_broadcast"}));
}

TEST(SelectionTable, BoundsAreIncluded) {
  const auto table = by_size();
  EXPECT_EQ(candidates(table, Op::kAllReduce, 64 << 10).front(), "counting");
  EXPECT_EQ(candidates(table, Op::kAllReduce, (64 << 10) + 1).front(), "counting_even");
}

TEST(SelectionTable, WhatNoRuleMatchesIsNative) {
  EXPECT_EQ(candidates(by_size(), Op::kAllReduce, (4 << 20) + 1), Ways());
  EXPECT_EQ(candidates(by_size(), Op::kReduce, 1), Ways());
  EXPECT_EQ(candidates(SelectionTable(), Op::kAllReduce, 1), Ways());
}

// The next candidates are tried in order if an algorithm does not suit.
TEST(SelectionTable, OtherMatchingRulesFollowTheFirst) {
  EXPECT_EQ(candidates(by_size(), Op::kAllReduce, 1024), (Ways{"counting", "counting_even", "native on mpi"}));
}

TEST(SelectionTable, RulesMayBeForGroupsOfOneSize) {
  const SelectionTable table{{.op = "gather", .ranks = 3, .algorithm = "counting"}, {.op = "gather", .backend = "mpi"}};
  EXPECT_EQ(candidates(table, Op::kGather, 8, {.ranks = 3}).front(), "counting");
  EXPECT_EQ(candidates(table, Op::kGather, 8, {.ranks = 4}), (Ways{"native on mpi"}));
}

TEST(SelectionTable, RulesMayBeForGroupsInsideAHostOrBetweenHosts) {
  const SelectionTable table{{.op = "gather", .scope = "host", .algorithm = "counting"},
                             {.op = "gather", .scope = "hosts", .algorithm = "counting_even"}};
  EXPECT_TRUE(table.depends_on_scope());
  EXPECT_EQ(candidates(table, Op::kGather, 8, {.ranks = 4, .scope = Scope::kHost}), (Ways{"counting"}));
  EXPECT_EQ(candidates(table, Op::kGather, 8, {.ranks = 4, .scope = Scope::kHosts}), (Ways{"counting_even"}));
  EXPECT_FALSE(by_size().depends_on_scope());
}

// This program has no kind of device, so only rules for the CPU or for any device can be written.
TEST(SelectionTable, RulesMayBeForTensorsOfADevice) {
  const SelectionTable table{{.op = "gather", .device = "cpu", .algorithm = "counting"},
                             {.op = "gather", .backend = "mpi"}};
  EXPECT_EQ(candidates(table, Op::kGather, 8).front(), "counting");
  EXPECT_EQ(candidates(table, Op::kGather, 8, {.ranks = 4}, c10::kCUDA), (Ways{"native on mpi"}));
}

TEST(SelectionTable, ARuleMayNameOnlyAConnectedBackend) {
  const SelectionTable table{{.op = "gather", .backend = "nccl"}};
  EXPECT_EQ(table.backends(), (std::vector<std::string>{"nccl"}));
  EXPECT_THAT([&] { ResolvedTable(table, {.ranks = 2}, {"mpi"}); },
              ThrowsMessage<ConfigError>(HasSubstr("names backend nccl, which does not connect this group; connected: "
                                                   "own, mpi")));
}

TEST(SelectionTable, CanBeFollowedByAnother) {
  const SelectionTable first{{.op = "reduce", .up_to = "1KB", .algorithm = "counting"}};
  const SelectionTable next{{.op = "reduce", .up_to = "512"}, {.op = "reduce", .algorithm = "counting_even"}};
  const auto both = first.followed_by(next);
  EXPECT_EQ(candidates(both, Op::kReduce, 100).front(), "counting");
  EXPECT_EQ(candidates(both, Op::kReduce, 5000), (Ways{"counting_even"}));
}

TEST(SelectionTable, PrintsOneRulePerLine) {
  EXPECT_EQ(by_size().to_text(), R"(operation   up to  ranks  scope  device  backend  algorithm
all_reduce  64 KB  any    any    any     own      counting
broadcast   any    any    any    any     own      counting_broadcast
all_reduce  1 MB   any    any    any     own      counting_even
all_reduce  4 MB   any    any    any     mpi      native
all         any    any    any    any     own      native
)");
}

TEST(SelectionTable, RefusesInvalidRules) {
  EXPECT_THROW((SelectionTable{{.op = "all_reduce", .algorithm = "rings"}}), ConfigError);
}

// The size is the bytes of the whole tensor, which all ranks know.
TEST(SelectionBytes, AreThoseOfTheWholeTensor) {
  EXPECT_EQ(selection_bytes({.elements = 1LL << 40, .op = Op::kAllReduce, .dtype = at::kDouble}), 1LL << 43);
  EXPECT_EQ(selection_bytes({.elements = 12, .op = Op::kAllToAll, .dtype = at::kHalf}), 24);
  EXPECT_EQ(selection_bytes({.detail = 1, .op = Op::kAllToAll, .dtype = at::kHalf}), kAnySize) << "uneven";
}

}  // namespace
}  // namespace phalanx
