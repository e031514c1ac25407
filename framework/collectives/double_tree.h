// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "framework/collectives/binary_tree.h"

/// Double binary trees: two trees over the same ranks such that no rank but the top is an inner node of both. Half of a
/// tensor flows through each, so every rank sends and receives at full bandwidth.
///
/// Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
/// Computing 35 (2009), section 2.
///
/// The first tree numbers its nodes in order from 1, and its leaves are the odd ones: the root of an interval of m >= 2
/// nodes is the highest power of two up to m, counted from the begin of the interval. The second is its mirror image
/// for an even number of nodes, and shifted by one for an odd number.
namespace phalanx::collectives {

/// A rank's places in the two trees.
using DoubleTree = std::array<TreeNode, 2>;

/// Trees with `root` on top of both, and all others below it. The order of ranks is not kept.
DoubleTree rooted_double_tree(int rank, int ranks, int root);

/// Trees in the order of ranks. For an odd number the last rank is on top of both.
DoubleTree ordered_double_tree(int rank, int ranks);

/// Half of the tensor through each tree.
std::array<Flow, 2> flows_of(const DoubleTree& tree, const at::Tensor& tensor);

}  // namespace phalanx::collectives
