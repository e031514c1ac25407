// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <stdexcept>
#include <string>

#include "framework/comm/operations/call.h"

namespace phalanx {

/// A class with one function per collective, such as a backend's implementation of them.
template <class T>
concept HasAllCollectives = requires(const T& collectives) {
  { collectives.broadcast() } -> std::same_as<void>;
  { collectives.reduce() } -> std::same_as<void>;
  { collectives.all_reduce() } -> std::same_as<void>;
  { collectives.reduce_scatter() } -> std::same_as<void>;
  { collectives.all_gather() } -> std::same_as<void>;
  { collectives.gather() } -> std::same_as<void>;
  { collectives.scatter() } -> std::same_as<void>;
  { collectives.all_to_all() } -> std::same_as<void>;
  { collectives.barrier() } -> std::same_as<void>;
};

/// Calls the function of `collectives` that performs `op`. A new collective is added here and in HasAllCollectives;
/// backends that lack it then do not compile. Throws std::logic_error for operations that are not collectives.
template <HasAllCollectives Collectives>
void dispatch_collective(Op op, const Collectives& collectives) {
  switch (op) {
    case Op::kBroadcast:
      return collectives.broadcast();
    case Op::kReduce:
      return collectives.reduce();
    case Op::kAllReduce:
      return collectives.all_reduce();
    case Op::kReduceScatter:
      return collectives.reduce_scatter();
    case Op::kAllGather:
      return collectives.all_gather();
    case Op::kGather:
      return collectives.gather();
    case Op::kScatter:
      return collectives.scatter();
    case Op::kAllToAll:
      return collectives.all_to_all();
    case Op::kBarrier:
      return collectives.barrier();
    case Op::kNone:  // no default, so that compilers warn if a new operation is missing here
    case Op::kSend:
    case Op::kRecv:
    case Op::kSplit:
    case Op::kShrink:
    case Op::kAllocate:
    case Op::kAllocateShared:
    case Op::kCustom:
      break;
  }
  throw std::logic_error(std::string(to_string(op)) + " cannot be launched");
}

}  // namespace phalanx
