// SPDX-License-Identifier: Apache-2.0
// Ways in which a backend whose ranks share memory performs an operation on tensors that they do not all reach. The
// backend has them; here they get names, so that rules can choose them and the tuner can measure them.
#include <utility>

#include "framework/collectives/algorithm.h"

namespace phalanx {
namespace {

bool add_way(Op op, const char* name, const char* about, NativeWay way) {
  return Algorithms::global().add({
      .op = op,
      .name = name,
      .about = about,
      .run =
          [way](Communicator& group, const Operation& operation) {
            Operation native = operation;
            native.way = way;
            group.launch(std::move(native)).wait();
          },
      .suits = [way](const Communicator& group, const Operation&) { return group.offers(way); },
      .only_private_memory = true,
  });
}

bool add_kernel_copy(Op op) {
  return add_way(op, "kernel_copy", "shm: each rank copies from the others' memory with a system call",
                 NativeWay::kKernelCopy);
}

const bool native_ways_registered =
    add_kernel_copy(Op::kBroadcast) && add_kernel_copy(Op::kAllGather) && add_kernel_copy(Op::kGather) &&
    add_kernel_copy(Op::kScatter) && add_kernel_copy(Op::kAllToAll) &&
    add_way(Op::kAllReduce, "one_shot", "shm: each rank reads (P - 1) n bytes and combines all", NativeWay::kOneShot) &&
    add_way(Op::kAllReduce, "two_shot", "shm: each rank combines a slice and reads those of others",
            NativeWay::kTwoShot);

}  // namespace
}  // namespace phalanx
