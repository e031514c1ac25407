// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_cuda/nccl_operation.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

using Kind = NcclCall::Kind;

std::byte* bytes_at(const void* device_address) { return static_cast<std::byte*>(mirror_of(device_address)); }

template <class T>
T combined(T a, T b, ncclRedOp_t op) {
  if (op == ncclMax) return std::max(a, b);
  if (op == ncclMin) return std::min(a, b);
  if constexpr (std::is_integral_v<T>) {  // wraps around
    using U = std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>;
    return static_cast<T>(op == ncclProd ? static_cast<U>(a) * static_cast<U>(b)
                                         : static_cast<U>(a) + static_cast<U>(b));
  } else {
    return op == ncclProd ? static_cast<T>(a * b) : static_cast<T>(a + b);
  }
}

// As in a ring, each part of the result begins with the contribution of another rank.
template <class T>
void reduce_as(std::byte* to, const std::vector<const std::byte*>& inputs, std::size_t count, ncclRedOp_t op) {
  const std::size_t ranks = inputs.size(), part = count / ranks + 1;
  const auto input = [&](std::size_t rank, std::size_t i) { return reinterpret_cast<const T*>(inputs[rank])[i]; };
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = (i / part + 1) % ranks;
    T sum = input(first, i);
    for (std::size_t k = 1; k < ranks; ++k) sum = combined(sum, input((first + k) % ranks, i), op);
    reinterpret_cast<T*>(to)[i] = sum;
  }
}

void reduce(std::byte* to, const std::vector<const std::byte*>& inputs, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(to, inputs, count, op);
    case ncclUint8:
      return reduce_as<std::uint8_t>(to, inputs, count, op);
    case ncclInt32:
      return reduce_as<std::int32_t>(to, inputs, count, op);
    case ncclInt64:
      return reduce_as<std::int64_t>(to, inputs, count, op);
    case ncclFloat16:
      return reduce_as<c10::Half>(to, inputs, count, op);
    case ncclBfloat16:
      return reduce_as<c10::BFloat16>(to, inputs, count, op);
    case ncclFloat32:
      return reduce_as<float>(to, inputs, count, op);
    default:
      return reduce_as<double>(to, inputs, count, op);
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

std::vector<Access> accesses_of(const NcclCall& call, int rank, int ranks) {
  const std::size_t bytes = call.count * size_of(call.type), all = bytes * static_cast<std::size_t>(ranks);
  const bool is_root = call.peer == rank;
  const auto reads = [&](std::size_t length) {
    return Access{.begin = static_cast<const std::byte*>(call.from), .bytes = length, .writes = false};
  };
  const auto writes = [&](std::size_t length) {
    return Access{.begin = static_cast<const std::byte*>(call.to), .bytes = length, .writes = true};
  };
  switch (call.kind) {
    case Kind::kBroadcast:
      return is_root ? std::vector{reads(bytes), writes(bytes)} : std::vector{writes(bytes)};
    case Kind::kReduce:
      return is_root ? std::vector{reads(bytes), writes(bytes)} : std::vector{reads(bytes)};
    case Kind::kAllReduce:
      return {reads(bytes), writes(bytes)};
    case Kind::kReduceScatter:
      return {reads(all), writes(bytes)};
    case Kind::kAllGather:
      return {reads(bytes), writes(all)};
    case Kind::kSend:
      return {reads(bytes)};
    case Kind::kRecv:
      return {writes(bytes)};
  }
  return {};
}

NcclOperation::NcclOperation(std::shared_ptr<NcclSegment> segment, int rank, int ranks,
                             const std::vector<NcclCall>& calls, bool captured)
    : segment_(std::move(segment)), rank_(rank), ranks_(ranks), captured_(captured) {
  for (const auto& call : calls) plan(call);
}

std::byte* NcclOperation::scratch(std::size_t bytes) {
  return scratch_.emplace_back(std::make_unique<std::byte[]>(bytes)).get();
}

void NcclOperation::plan(const NcclCall& call) {
  const std::size_t bytes = call.count * size_of(call.type);
  std::byte *const from = bytes_at(call.from), *const to = bytes_at(call.to);
  Step step;
  const auto with = [&](bool sends, int peer, std::byte* data) {
    step.transfers.push_back({.sends = sends, .peer = peer, .data = data, .bytes = bytes});
  };
  const auto with_others = [&](bool sends, const std::function<std::byte*(int)>& data) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) with(sends, peer, data(peer));
    }
  };
  const auto part = [&](std::byte* all, int rank) { return all + static_cast<std::size_t>(rank) * bytes; };
  switch (call.kind) {
    case Kind::kBroadcast:
      if (call.peer != rank_) {
        with(false, call.peer, to);
        break;
      }
      with_others(true, [&](int) { return from; });
      step.finish = [=] { std::memmove(to, from, bytes); };
      break;
    case Kind::kReduce:
      if (call.peer != rank_) with(true, call.peer, from);
      plan_reduction(call, step, call.peer == rank_);
      break;
    case Kind::kAllReduce:
      with_others(true, [&](int) { return from; });
      plan_reduction(call, step, true);
      break;
    case Kind::kReduceScatter:
      with_others(true, [&](int peer) { return part(from, peer); });
      plan_reduction(call, step, true);
      break;
    case Kind::kAllGather:
      with_others(true, [&](int) { return from; });
      with_others(false, [&](int peer) { return part(to, peer); });
      step.finish = [=, own = part(to, rank_)] { std::memmove(own, from, bytes); };
      break;
    case Kind::kSend:
      with(true, call.peer, from);
      break;
    case Kind::kRecv:
      with(false, call.peer, to);
      break;
  }
  steps_.push_back(std::move(step));
}

// Receives the contributions of the others. The result is written only after the rank's own has been sent.
void NcclOperation::plan_reduction(const NcclCall& call, Step& step, bool gets_result) {
  if (!gets_result) return;
  const std::size_t bytes = call.count * size_of(call.type);
  const std::byte* own = bytes_at(call.from);
  if (call.kind == Kind::kReduceScatter) own += static_cast<std::size_t>(rank_) * bytes;
  std::vector<const std::byte*> inputs;
  for (int peer = 0; peer < ranks_; ++peer) {
    inputs.push_back(peer == rank_ ? own : scratch(bytes));
    if (peer == rank_) continue;
    step.transfers.push_back(
        {.sends = false, .peer = peer, .data = const_cast<std::byte*>(inputs.back()), .bytes = bytes});
  }
  step.finish = [=, to = bytes_at(call.to)] { reduce(to, inputs, call.count, call.type, call.op); };
}

void NcclOperation::move(Transfer& transfer) {
  NcclChannel& channel =
      transfer.sends ? segment_->channel(rank_, transfer.peer) : segment_->channel(transfer.peer, rank_);
  const Header own{.bytes = transfer.bytes, .captured = captured_ ? 1U : 0U};
  if (transfer.sends) transfer.header = own;
  while (!transfer.is_complete()) {
    const bool in_header = transfer.done < sizeof(transfer.header);
    if (!in_header && transfer.header != own) {  // another operation than the peer's: waits forever
      if (transfer.header.captured != own.captured) segment_->report_mixed_graphs();
      return;
    }
    std::byte* const data = in_header ? reinterpret_cast<std::byte*>(&transfer.header) + transfer.done
                                      : transfer.data + (transfer.done - sizeof(transfer.header));
    const std::size_t bytes =
        (in_header ? sizeof(transfer.header) : sizeof(transfer.header) + transfer.bytes) - transfer.done;
    const std::size_t moved = transfer.sends ? channel.send(data, bytes) : channel.receive(data, bytes);
    transfer.done += moved;
    if (moved == 0) return;
  }
}

// In each direction, the bytes of a pair of ranks have one order, which is that of the calls.
bool NcclOperation::progress() {
  std::vector<bool> blocked(static_cast<std::size_t>(2 * ranks_));
  bool complete = true;
  for (auto& step : steps_) {
    bool moved_all = true;
    for (auto& transfer : step.transfers) {
      const auto direction = static_cast<std::size_t>(2 * transfer.peer + (transfer.sends ? 1 : 0));
      if (!transfer.is_complete() && !blocked[direction]) move(transfer);
      if (transfer.is_complete()) continue;
      blocked[direction] = true;
      moved_all = false;
    }
    if (moved_all && !std::exchange(step.finished, true) && step.finish) step.finish();
    complete &= moved_all;
  }
  return complete;
}

}  // namespace phalanx::testing
