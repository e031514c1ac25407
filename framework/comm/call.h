// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/comm/reduction.h"

namespace phalanx {

enum class Op : std::uint8_t {
  kNone,
  kBroadcast,
  kReduce,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
  kSplit,
  kShrink,
  kAllocate,
  kAllocateShared,
  kCustom,  // Communicator::run
};

std::string_view to_string(Op op);

/// What a rank asks of its group: what records hold, messages say, and ranks compare. Plain bytes, so that it can
/// travel. The same on all ranks, except for send and recv.
struct Call {
  std::int64_t elements = 0;  // of the caller's whole input; of an uneven operation: of the whole group, in gather,
                              // scatter, all_gather and reduce_scatter; 0 in all_to_all, where ranks differ
  std::uint64_t detail = 0;   // a hash of what else must agree: counts per rank, the name of a reduction of a user's,
                              // sizes of memory
  std::int32_t peer = -1;     // root, or the other end of send and recv
  std::int32_t tag = 0;       // of send and recv
  Op op = Op::kNone;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  Reduction::Kind reduction = Reduction::kSum;

  bool operator==(const Call&) const = default;
};

/// "all_reduce(sum) of 1000 Float", "broadcast(root 1) of 12 Long", "send(to 2, tag 0) of 7 Double", "barrier".
std::string describe(const Call& call);

}  // namespace phalanx
