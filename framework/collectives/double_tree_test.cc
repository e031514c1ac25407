// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/double_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

namespace phalanx::collectives {
namespace {

using Trees = std::vector<DoubleTree>;  // by rank

// Returns the ranks of the subtree of `rank`, in the order lower subtree, `rank`, upper subtree.
std::vector<int> subtree(const Trees& trees, int which, int rank) {
  if (rank < 0) return {};
  const TreeNode& node = trees[rank][which];
  for (const int child : {node.lower, node.upper}) {
    EXPECT_TRUE(child < 0 || trees[child][which].parent == rank);
  }
  auto all = subtree(trees, which, node.lower);
  all.push_back(rank);
  for (const int below : subtree(trees, which, node.upper)) all.push_back(below);
  return all;
}

int height(const Trees& trees, int which, int rank) {
  if (rank < 0) return 0;
  const TreeNode& node = trees[rank][which];
  return 1 + std::max(height(trees, which, node.lower), height(trees, which, node.upper));
}

void expect_double_tree(const Trees& trees, bool ordered) {
  const int ranks = static_cast<int>(trees.size());
  for (int which = 0; which < 2; ++which) {
    int top = -1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (trees[rank][which].parent < 0) top = rank;
    }
    const auto order = subtree(trees, which, top);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), trees.size()) << "all ranks, once";
    EXPECT_EQ(order.size(), trees.size());
    EXPECT_TRUE(!ordered || std::is_sorted(order.begin(), order.end()));
    EXPECT_LE(height(trees, which, top), std::bit_width(static_cast<unsigned>(ranks)) + 1);
  }
  for (const DoubleTree& rank : trees) {
    const auto inner = [](const TreeNode& node) { return node.lower >= 0 || node.upper >= 0; };
    const bool on_top = rank[0].parent < 0 && rank[1].parent < 0;
    EXPECT_TRUE(on_top || !(inner(rank[0]) && inner(rank[1]))) << "inner node of both";
  }
}

TEST(DoubleTree, InOrderOfRanks) {
  for (int ranks = 1; ranks < 70; ++ranks) {
    SCOPED_TRACE(ranks);
    Trees trees;
    for (int rank = 0; rank < ranks; ++rank) trees.push_back(ordered_double_tree(rank, ranks));
    expect_double_tree(trees, true);
  }
}

TEST(DoubleTree, WithAnyRoot) {
  for (int ranks = 1; ranks < 40; ++ranks) {
    for (int root = 0; root < ranks; root += 3) {
      SCOPED_TRACE(::testing::Message() << "root " << root << " of " << ranks);
      Trees trees;
      for (int rank = 0; rank < ranks; ++rank) trees.push_back(rooted_double_tree(rank, ranks, root));
      expect_double_tree(trees, false);
      EXPECT_EQ(trees[root][0].parent, -1);
      EXPECT_EQ(trees[root][1].parent, -1);
    }
  }
}

}  // namespace
}  // namespace phalanx::collectives
