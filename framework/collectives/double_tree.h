// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "framework/collectives/binary_tree.h"

/// Double binary trees: two trees over the same ranks in which no rank but the top is an inner node of both. One half
/// of a tensor flows through each tree, so every rank sends and receives at full bandwidth.
///
/// Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
/// Computing 35 (2009), section 2.
///
/// The first tree numbers its nodes in order from 1, and its leaves are the odd nodes. The root of an interval of m >=
/// 2 nodes is the node at the highest power of two up to m, counted from the beginning of the interval. The second tree
/// mirrors the first for an even number of nodes and shifts it by one for an odd number.
namespace phalanx::collectives {

/// A rank's places in the two trees.
using DoubleTree = std::array<TreeNode, 2>;

/// Returns the places of `rank` in trees that have `root` as the top of both and all other ranks below it. The trees do
/// not keep the order of ranks.
DoubleTree rooted_double_tree(int rank, int ranks, int root);

/// Returns the places of `rank` in trees that keep the order of ranks. For an odd number of ranks the last rank is the
/// top of both.
DoubleTree ordered_double_tree(int rank, int ranks);

/// Returns two flows, each with one half of the tensor and one of the trees.
std::array<Flow, 2> flows_of(const DoubleTree& tree, const at::Tensor& tensor);

}  // namespace phalanx::collectives
