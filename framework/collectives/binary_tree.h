// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "framework/comm/communicator.h"

/// Trees in which a node has at most two children and through which a tensor flows chunk by chunk. Chains and double
/// binary trees are built from them.
namespace phalanx::collectives {

/// A rank's neighbors in a tree; -1 if there is no such neighbor. The node without a parent is the top.
struct TreeNode {
  int parent = -1;
  int lower = -1;  // the subtree of this child holds lower ranks than this node, in trees that keep the order of ranks
  int upper = -1;  // the same for higher ranks
};

/// This rank's place in a tree and the tensor that flows through the tree. `data` has the same number of elements on
/// all ranks.
struct Flow {
  TreeNode node;
  at::Tensor data;
};

/// Broadcasts the data of each flow's top to all ranks, through that flow's tree. The chunks of all flows take turns,
/// and a rank receives chunks while it forwards earlier ones. Each rank sends the bytes of a flow once to each child.
void flow_down(Communicator& group, std::span<const Flow> flows);

/// Reduces the data of all ranks into the data of each flow's top and calls finish() there; on other ranks the data is
/// only read. Each node combines in the order lower, own, upper. Each rank but the top sends the bytes of a flow once.
/// Memory: 6 chunks.
void flow_up(Communicator& group, std::span<const Flow> flows, const Reduction& op);

}  // namespace phalanx::collectives
