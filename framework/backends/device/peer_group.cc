// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/peer_group.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "framework/backends/device/staging.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/parts.h"
#include "framework/comm/operations/divide_by_ranks.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

bool is_number(c10::ScalarType dtype) { return dtype != at::kBool && dtype != at::kShort; }

bool reduces(const Reduction& reduction, c10::ScalarType dtype) {
  switch (reduction.kind()) {
    case Reduction::kSum:
    case Reduction::kProduct:
    case Reduction::kMin:
    case Reduction::kMax:
      return is_number(dtype);
    case Reduction::kMean:
      return c10::isFloatingType(dtype);
    default:
      return false;
  }
}

void combine(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, Reduction::Kind kind) {
  switch (kind) {
    case Reduction::kProduct:
      at::mul_out(sum, a, b);
      break;
    case Reduction::kMin:
      at::minimum_out(sum, a, b);
      break;
    case Reduction::kMax:
      at::maximum_out(sum, a, b);
      break;
    default:
      at::add_out(sum, a, b);
  }
}

// Combines the parts in rank order into `result`, which may be one of the parts.
void reduce_into(at::Tensor result, const std::vector<at::Tensor>& parts, const Reduction& reduction) {
  const auto dtype = result.scalar_type();
  const bool half = dtype == at::kHalf || dtype == at::kBFloat16;
  if (parts.size() == 2 && !half) {
    combine(result, parts[0], parts[1], reduction.kind());
    if (reduction.kind() == Reduction::kMean) divide_by_ranks(result, 2);
    return;
  }
  at::Tensor sum = parts[0].to(half ? at::kFloat : dtype, /*non_blocking=*/false, /*copy=*/true);
  for (std::size_t i = 1; i < parts.size(); ++i)
    combine(sum, sum, half ? parts[i].to(at::kFloat) : parts[i], reduction.kind());
  if (reduction.kind() == Reduction::kMean) divide_by_ranks(sum, static_cast<int>(parts.size()));
  result.copy_(sum);
}

std::vector<at::Tensor> narrowed(const std::vector<at::Tensor>& parts, std::int64_t begin, std::int64_t count) {
  std::vector<at::Tensor> all;
  for (const auto& part : parts) all.push_back(part.narrow(0, begin, count));
  return all;
}

// Each rank combines one part of all ranks' memory and writes the result to all ranks.
void all_reduce(Communicator& host, const std::vector<at::Tensor>& places, const Reduction& reduction) {
  const auto begin = part_begin(places[0].numel(), host.size(), host.rank());
  const auto end = part_begin(places[0].numel(), host.size(), host.rank() + 1);
  if (begin == end) return;
  const auto parts = narrowed(places, begin, end - begin);
  const at::Tensor& own = parts[static_cast<std::size_t>(host.rank())];
  reduce_into(own, parts, reduction);
  for (int rank = 0; rank < host.size(); ++rank) {
    if (rank == host.rank()) continue;
    at::Tensor other = parts[static_cast<std::size_t>(rank)];
    other.copy_(own);
  }
}

// Returns the error message of `body`; empty if it succeeds.
std::string trouble_of(const std::function<void()>& body) {
  try {
    body();
    return "";
  } catch (const CommError& error) {
    return error.what();
  }
}

// Throws the error of the first rank that has one, the same on all ranks.
void throw_first(const std::vector<std::string>& troubles) {
  for (std::size_t rank = 0; rank < troubles.size(); ++rank) {
    if (troubles[rank].empty()) continue;
    throw CommError(CommError::Kind::kSystem,
                    "sharing device memory failed on rank " + std::to_string(rank) + ": " + troubles[rank]);
  }
}

void synchronize(Communicator& host, const at::Device& device) {
  synchronize_stream(device);
  host.barrier().wait();
}

// Performs the operation in a group of one rank, where reductions and broadcasts change nothing.
void alone(const Operation& operation, const at::Device& device) {
  at::Tensor output = operation.output;
  if (operation.input.defined()) output.copy_(operation.input.view(output.sizes()));
  synchronize_stream(device);
}

// Performs the operation on the memory or the windows of all ranks. all_reduce writes the result on all ranks, reduce
// only on the root, and broadcast on all ranks but the root.
void work_on(Communicator& host, const Operation& operation, const std::vector<at::Tensor>& places) {
  const auto root = static_cast<std::size_t>(operation.root()), rank = static_cast<std::size_t>(host.rank());
  at::Tensor own = places[rank];
  switch (operation.call.op) {
    case Op::kAllReduce:
      all_reduce(host, places, operation.reduction);
      break;
    case Op::kReduce:
      if (rank == root) reduce_into(own, places, operation.reduction);
      break;
    default:
      if (rank != root) own.copy_(places[root]);
  }
}

}  // namespace

bool PeerGroup::supports(const Operation& operation) {
  const auto even = [&] { return operation.input_counts.empty() && operation.output_counts.empty(); };
  switch (operation.call.op) {
    case Op::kBroadcast:
      return true;
    case Op::kReduce:
    case Op::kAllReduce:
      return reduces(operation.reduction, operation.output.scalar_type());
    case Op::kAllGather:
      return even();
    case Op::kReduceScatter:
      return even() && reduces(operation.reduction, operation.output.scalar_type());
    default:
      return false;
  }
}

void PeerGroup::run(Communicator& host, const Operation& operation) {
  const at::NoGradGuard no_grad;
  if (host.size() == 1) return alone(operation, memory_->device());
  switch (operation.call.op) {
    case Op::kAllGather:
      return gather_in_rounds(host, operation);
    case Op::kReduceScatter:
      return scatter_in_rounds(host, operation);
    default:
      break;
  }
  const Parts places = in_place(host, operation.output);
  if (places.empty()) return in_rounds(host, operation);
  work_on(host, operation, places);
  synchronize(host, memory_->device());
}

bool PeerGroup::open_windows(Communicator& host) {
  if (!open_) open_ = host.size() == 1 || make_windows(host);
  return *open_;
}

bool PeerGroup::make_windows(Communicator& host) {
  try {
    windows_ = allocate_block(host, window_bytes_);
    return true;
  } catch (const CommError& error) {  // such as GPUs that do not reach each other
    if (error.kind() != CommError::Kind::kSystem) throw;
    log_info() << "device tensors are copied through host memory: " << error.what();
    return false;
  }
}

// If one rank cannot allocate or open the memory, the other ranks close and free theirs.
PeerGroup::Block PeerGroup::allocate_block(Communicator& host, std::int64_t bytes) {
  Block block;
  std::string handle;
  const auto on_all = [&](const std::function<void()>& body) {
    const auto troubles = all_gather_text(trouble_of(body), host);
    if (std::ranges::all_of(troubles, [](const auto& trouble) { return trouble.empty(); })) return;
    block.of_ranks.clear();
    host.barrier().wait();
    if (block.own.defined()) memory_->free(block.own);
    throw_first(troubles);
  };
  on_all([&] {
    block.own = memory_->allocate(std::max<std::int64_t>(bytes, 1));
    handle = memory_->handle_of(block.own);
  });
  const auto handles = all_gather_text(handle, host);
  on_all([&] {
    for (int rank = 0; rank < host.size(); ++rank) {
      const auto& theirs = handles[static_cast<std::size_t>(rank)];
      block.of_ranks.push_back(rank == host.rank() ? block.own : memory_->open(theirs, block.own.numel()));
    }
  });
  return block;
}

// The blocks are never freed, since other ranks have them open.
at::Tensor PeerGroup::allocate(Communicator& host, const Allocation& allocation) {
  Block block = allocate_block(host, static_cast<std::int64_t>(allocation.bytes()));
  const at::Tensor own = block.own;
  blocks_.emplace(next_block_++, std::move(block));
  return at::for_blob(own.data_ptr(), allocation.sizes)
      .deleter([own](void*) {})
      .options(allocation.options.device(own.device()))
      .target_device(own.device())
      .make_tensor();
}

// Also synchronizes the ranks before the operation: each rank sends the place of its memory only after its device has
// finished its work.
PeerGroup::Parts PeerGroup::in_place(Communicator& host, const at::Tensor& tensor) const {
  const auto* const begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  const at::Tensor mine = at::full({2}, -1, at::kLong), all = at::empty({host.size(), 2}, at::kLong);
  for (const auto& [number, block] : blocks_) {
    const auto offset = begin - static_cast<const std::byte*>(block.own.const_data_ptr());
    if (offset < 0 || offset + bytes > block.own.numel()) continue;
    mine.mutable_data_ptr<std::int64_t>()[0] = number;
    mine.mutable_data_ptr<std::int64_t>()[1] = offset;
  }
  synchronize_stream(memory_->device());
  host.all_gather(all, mine).wait();
  const auto* const places = all.const_data_ptr<std::int64_t>();
  Parts parts;
  for (int rank = 0; rank < host.size(); ++rank) {
    if (places[2 * rank] < 0 || places[2 * rank] != places[0]) return {};
    const at::Tensor& memory = blocks_.at(places[0]).of_ranks[static_cast<std::size_t>(rank)];
    parts.push_back(memory.narrow(0, places[2 * rank + 1], bytes).view(tensor.scalar_type()));
  }
  return parts;
}

PeerGroup::Parts PeerGroup::windows(const at::Tensor& like, std::int64_t elements) const {
  Parts parts;
  for (const auto& window : windows_.of_ranks) {
    parts.push_back(window.narrow(0, 0, elements * like.element_size()).view(like.scalar_type()));
  }
  return parts;
}

// A round copies a piece into the rank's own window, performs the operation on all windows, and copies the result back.
void PeerGroup::in_rounds(Communicator& host, const Operation& operation) {
  const at::Tensor flat = operation.output.view({-1});
  const auto step = window_bytes_ / flat.element_size();
  for (std::int64_t begin = 0; begin < flat.numel(); begin += step) {
    const auto count = std::min(step, flat.numel() - begin);
    at::Tensor part = flat.narrow(0, begin, count);
    const Parts all = windows(flat, count);
    at::Tensor own = all[static_cast<std::size_t>(host.rank())];
    own.copy_(part);
    synchronize(host, memory_->device());
    work_on(host, operation, all);
    synchronize(host, memory_->device());
    const bool written = operation.call.op != Op::kReduce || host.rank() == operation.root();
    if (written) part.copy_(own);
  }
  synchronize_stream(memory_->device());
}

void PeerGroup::gather_in_rounds(Communicator& host, const Operation& operation) {
  const at::Tensor input = operation.input.view({-1});
  const at::Tensor output = operation.output.view({host.size(), input.numel()});
  const auto step = window_bytes_ / input.element_size();
  for (std::int64_t begin = 0; begin < input.numel(); begin += step) {
    const auto count = std::min(step, input.numel() - begin);
    const Parts all = windows(input, count);
    at::Tensor own = all[static_cast<std::size_t>(host.rank())];
    own.copy_(input.narrow(0, begin, count));
    synchronize(host, memory_->device());
    for (int rank = 0; rank < host.size(); ++rank) {
      output[rank].narrow(0, begin, count).copy_(all[static_cast<std::size_t>(rank)]);
    }
    synchronize(host, memory_->device());
  }
}

// A window holds an equal piece of the part of each rank.
void PeerGroup::scatter_in_rounds(Communicator& host, const Operation& operation) {
  const at::Tensor output = operation.output.view({-1});
  const at::Tensor input = operation.input.view({host.size(), output.numel()});
  const auto step = std::max<std::int64_t>(1, window_bytes_ / output.element_size() / host.size());
  for (std::int64_t begin = 0; begin < output.numel(); begin += step) {
    const auto count = std::min(step, output.numel() - begin);
    const Parts all = windows(output, count * host.size());
    at::Tensor own = all[static_cast<std::size_t>(host.rank())].view({host.size(), count});
    own.copy_(input.narrow(1, begin, count));
    synchronize(host, memory_->device());
    const Parts mine = narrowed(all, host.rank() * count, count);
    reduce_into(output.narrow(0, begin, count), mine, operation.reduction);
    synchronize(host, memory_->device());
  }
}

}  // namespace phalanx
