// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/call.h"

#include <sstream>

namespace phalanx {

std::string_view to_string(Op op) {
  switch (op) {
    case Op::kNone:
      return "nothing";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kReduce:
      return "reduce";
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kAllGather:
      return "all_gather";
    case Op::kGather:
      return "gather";
    case Op::kScatter:
      return "scatter";
    case Op::kAllToAll:
      return "all_to_all";
    case Op::kSend:
      return "send";
    case Op::kRecv:
      return "recv";
    case Op::kBarrier:
      return "barrier";
    case Op::kSplit:
      return "split";
    case Op::kShrink:
      return "shrink";
    case Op::kAllocate:
      return "allocate";
    case Op::kAllocateShared:
      return "allocate_shared";
    case Op::kCustom:
      return "custom operation";
  }
  return "unknown operation";
}

std::string describe(const Call& call) {
  std::ostringstream text;
  text << to_string(call.op);
  switch (call.op) {
    case Op::kAllReduce:
    case Op::kReduceScatter:
      text << '(' << to_string(call.reduction) << ')';
      break;
    case Op::kReduce:
      text << '(' << to_string(call.reduction) << ", root " << call.peer << ')';
      break;
    case Op::kBroadcast:
    case Op::kGather:
    case Op::kScatter:
      text << "(root " << call.peer << ')';
      break;
    case Op::kSend:
      text << "(to " << call.peer << ", tag " << call.tag << ')';
      break;
    case Op::kRecv:
      text << "(from " << call.peer << ", tag " << call.tag << ')';
      break;
    default:
      break;
  }
  if (call.dtype != c10::ScalarType::Undefined) text << " of " << call.elements << ' ' << c10::toString(call.dtype);
  return text.str();
}

}  // namespace phalanx
