// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/double_tree.h"

#include <bit>
#include <functional>

#include "framework/collectives/steps.h"

namespace phalanx::collectives {
namespace {

// Returns the root of nodes (begin, end], counted from 1, or 0 if the interval is empty.
int root_of(int begin, int end) {
  return end <= begin ? 0 : begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(end - begin)));
}

// Returns the node's neighbors in the first tree. Nodes count from 1 here, and 0 means that there is no neighbor.
TreeNode in_order_node(int node, int nodes) {
  int begin = 0, end = nodes, parent = 0;
  for (int root = root_of(begin, end); root != node; root = root_of(begin, end)) {
    parent = root;
    if (node < root) {
      end = root - 1;
    } else {
      begin = root;
    }
  }
  return {.parent = parent, .lower = root_of(begin, node - 1), .upper = root_of(node, end)};
}

// Returns the neighbors of `node` in the tree in which node i takes place(i) of the first tree. `back` is the inverse
// of `place`.
TreeNode moved(int node, int nodes, const std::function<int(int)>& place, const std::function<int(int)>& back) {
  const TreeNode first = in_order_node(place(node), nodes);
  const auto moved_back = [&](int other) { return other == 0 ? 0 : back(other); };
  return {.parent = moved_back(first.parent), .lower = moved_back(first.lower), .upper = moved_back(first.upper)};
}

// Returns the neighbors of `node` in both trees of nodes 1..nodes.
DoubleTree trees_of(int node, int nodes) {
  DoubleTree trees{in_order_node(node, nodes), {}};
  if (nodes % 2 == 0) {
    const auto mirror = [nodes](int i) { return nodes + 1 - i; };
    trees[1] = moved(node, nodes, mirror, mirror);
    std::swap(trees[1].lower, trees[1].upper);
  } else {
    trees[1] =
        moved(node, nodes, [nodes](int i) { return i == 1 ? nodes : i - 1; }, [nodes](int i) { return i % nodes + 1; });
  }
  return trees;
}

// Replaces node numbers by ranks. A node without a parent gets `none` as its parent: -1, or the rank at the top.
template <class RankOf>
DoubleTree with_ranks(DoubleTree trees, int none, const RankOf& rank_of) {
  for (TreeNode& node : trees) {
    node.parent = node.parent == 0 ? none : rank_of(node.parent);
    node.lower = node.lower == 0 ? -1 : rank_of(node.lower);
    node.upper = node.upper == 0 ? -1 : rank_of(node.upper);
  }
  return trees;
}

}  // namespace

DoubleTree rooted_double_tree(int rank, int ranks, int root) {
  const int nodes = ranks - 1;
  const auto rank_of = [&](int node) { return mod(root + node, ranks); };
  if (rank != root) return with_ranks(trees_of(mod(rank - root, ranks), nodes), root, rank_of);
  if (nodes == 0) return {};
  const int first = root_of(0, nodes);
  const int second = nodes % 2 == 0 ? nodes + 1 - first : first % nodes + 1;
  return {TreeNode{.parent = -1, .lower = rank_of(first), .upper = -1},
          TreeNode{.parent = -1, .lower = rank_of(second), .upper = -1}};
}

DoubleTree ordered_double_tree(int rank, int ranks) {
  if (ranks % 2 == 1) return rooted_double_tree(rank, ranks, ranks - 1);
  return with_ranks(trees_of(rank + 1, ranks), -1, [](int node) { return node - 1; });
}

std::array<Flow, 2> flows_of(const DoubleTree& tree, const at::Tensor& tensor) {
  return {Flow{.node = tree[0], .data = part_of(tensor, 0, 2)}, Flow{.node = tree[1], .data = part_of(tensor, 1, 2)}};
}

}  // namespace phalanx::collectives
