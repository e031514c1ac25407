// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/comm/operations/reduction.h"

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

/// The request that a rank makes of its group: it is recorded, shown in messages, and compared between ranks. Plain
/// bytes, so that it can be sent. The same on all ranks, except for send and recv.
struct Call {
  /// The number of elements of the caller's tensor. In gather, scatter, all_gather and reduce_scatter, this is the
  /// number of elements of the whole group. In uneven all_to_all it is 0, because ranks differ.
  std::int64_t elements = 0;
  /// A hash of everything else that must agree: counts per rank, the name of a user's reduction, sizes of memory.
  std::uint64_t detail = 0;
  std::int32_t peer = -1;  // root, or the other end of send and recv
  std::int32_t tag = 0;    // of send and recv
  Op op = Op::kNone;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  Reduction::Kind reduction = Reduction::kSum;

  bool operator==(const Call&) const = default;
};

/// "all_reduce(sum) of 1000 Float", "broadcast(root 1) of 12 Long", "send(to 2, tag 0) of 7 Double", "barrier".
std::string describe(const Call& call);

}  // namespace phalanx
