// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier.
//
// Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", Int. J. Parallel Program. 17
// (1988).
//
// In step k each rank tells rank + 2^k that it has arrived, and so have all ranks that it has heard of. It hears the
// same from rank - 2^k.
//
// Steps: ceil(log2 P). On the wire: each rank sends one byte per step.
#include <ATen/ops/zeros.h>

#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"

namespace phalanx {

using namespace collectives;

namespace {

void direct_barrier(Communicator& group, const Operation&) {
  const at::Tensor here = at::zeros({1}, at::kByte), heard = at::zeros({1}, at::kByte);
  for (int distance = 1; distance < group.size(); distance *= 2) {
    exchange(group, here, mod(group.rank() + distance, group.size()), heard,
             mod(group.rank() - distance, group.size()));
  }
}

const bool direct_barrier_registered =
    Algorithms::global().add({.op = Op::kBarrier,
                              .name = "direct",
                              .about = "dissemination: ceil(log2 P) steps, one byte each",
                              .run = direct_barrier});

}  // namespace
}  // namespace phalanx
