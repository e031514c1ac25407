// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "framework/comm/communicator.h"

/// Trees of at most two children a node, through which a tensor flows chunk by chunk: what chains and double binary
/// trees are made of.
namespace phalanx::collectives {

/// A rank's neighbours in a tree; -1: none. The node without a parent is the top.
struct TreeNode {
  int parent = -1;
  int lower = -1;  // this child's subtree holds ranks below this one, where the order of ranks matters
  int upper = -1;  // and above
};

/// This rank's place in a tree, and what flows through that. On all ranks `data` has as many elements.
struct Flow {
  TreeNode node;
  at::Tensor data;
};

/// All tops' data to all ranks, each flow by its tree. Chunks of all flows take turns; a rank receives some while it
/// sends others on. Each rank sends a flow's bytes once to each child.
void flow_down(Communicator& group, std::span<const Flow> flows);

/// All ranks' data combined in the tops' data, finish() included; the others' is only read. The order is lower . own .
/// upper at each node. Each rank but the top sends a flow's bytes once. Memory: 6 chunks.
void flow_up(Communicator& group, std::span<const Flow> flows, const Reduction& op);

}  // namespace phalanx::collectives
