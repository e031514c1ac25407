// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/arguments.h"

#include <c10/core/DeviceType.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/random.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(Op op, const std::string& why) {
  throw std::invalid_argument(std::string(to_string(op)) + ": " + why);
}

bool moves(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kByte:
    case c10::kChar:
    case c10::kShort:
    case c10::kInt:
    case c10::kLong:
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kDouble:
    case c10::kBool:
      return true;
    default:
      return false;
  }
}

std::string devices_of(const Communicator& group) {
  std::vector<std::string> names;
  for (int type = 0; type < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++type) {
    const auto device = static_cast<c10::DeviceType>(type);
    if (group.takes(device)) names.push_back(c10::DeviceTypeName(device, /*lower_case=*/true));
  }
  return join(names, " and ");
}

void check_device(Op op, const Communicator& group, c10::Device device, const char* which) {
  if (group.takes(device.type())) return;
  refuse(op, std::string("the ") + which + " is on " + device.str() + ", but " + group.name() + " takes tensors on " +
                 devices_of(group));
}

void check_tensor(Op op, const Communicator& group, const at::Tensor& tensor, const char* which = "tensor") {
  const auto the = [&] { return std::string("the ") + which; };
  if (!tensor.defined()) refuse(op, the() + " is undefined");
  check_device(op, group, tensor.device(), which);
  if (tensor.layout() != at::kStrided) refuse(op, the() + " is not dense");
  if (!tensor.is_contiguous()) refuse(op, the() + " is not contiguous; pass tensor.contiguous() and copy back");
  if (!moves(tensor.scalar_type())) {
    refuse(op, std::string("dtype ") + c10::toString(tensor.scalar_type()) +
                   " is not one of Byte, Char, Short, Int, Long, Half, BFloat16, Float, Double, Bool");
  }
}

void check_pair(Op op, const Communicator& group, const at::Tensor& output, const at::Tensor& input) {
  check_tensor(op, group, output, "output");
  check_tensor(op, group, input, "input");
  if (output.device() != input.device()) {
    refuse(op, "the input is on " + input.device().str() + ", the output on " + output.device().str());
  }
  if (output.scalar_type() == input.scalar_type()) return;
  refuse(op, std::string("the input is ") + c10::toString(input.scalar_type()) + ", the output " +
                 c10::toString(output.scalar_type()));
}

void check_rank(Op op, const char* what, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  refuse(op, std::string(what) + ' ' + std::to_string(rank) + " is not a rank of a group of " + std::to_string(size));
}

void check_reduction(Op op, const Reduction& reduction, c10::ScalarType dtype) {
  if (reduction.takes(dtype)) return;
  refuse(op, "there is no " + reduction.name() + " of " + c10::toString(dtype));
}

std::uint64_t hash_of(Counts counts) {
  std::uint64_t hash = counts.size();
  for (const auto count : counts) hash = mix(hash, static_cast<std::uint64_t>(count));
  return hash;
}

std::uint64_t hash_of(const Reduction& op) {
  return op.kind() == Reduction::Kind::kCustom ? std::hash<std::string>()(op.name()) : 0;
}

void check_counts(Op op, Counts counts, int size) {
  if (counts.empty()) return;
  if (static_cast<int>(counts.size()) != size) {
    refuse(op, std::to_string(counts.size()) + " counts for a group of " + std::to_string(size));
  }
  for (const auto count : counts) {
    if (count < 0) refuse(op, "a negative count, " + std::to_string(count));
  }
}

// Equal counts are none: backends then use the operations that MPI and NCCL have for equal parts.
Counts without_equal(Counts counts) {
  return std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end() ? Counts() : counts;
}

std::int64_t whole_of(Counts counts, std::int64_t part, int size) {
  return counts.empty() ? part * size : std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Checks the size of the tensor that holds all parts against the counts, or against the size of one part.
void check_whole(Op op, const char* which, std::int64_t whole, Counts counts, int size, std::int64_t part) {
  const std::int64_t want = whole_of(counts, part, size);
  if (whole == want) return;
  refuse(op, std::string("the ") + which + " has " + std::to_string(whole) + " elements, not " + std::to_string(want) +
                 (counts.empty() ? ": " + std::to_string(size) + " parts of " + std::to_string(part)
                                 : ", the sum of the counts"));
}

void check_part(Op op, const char* which, std::int64_t part, Counts counts, int rank) {
  if (counts.empty() || part == counts[rank]) return;
  refuse(op, std::string("the ") + which + " has " + std::to_string(part) + " elements, but the count of rank " +
                 std::to_string(rank) + " is " + std::to_string(counts[rank]));
}

// Checks that a rank sends to itself as many elements as it receives from itself.
void check_own_counts(Op op, Counts output_counts, Counts input_counts, int rank) {
  if (input_counts.empty() || output_counts[rank] == input_counts[rank]) return;
  refuse(op, std::to_string(input_counts[rank]) + " elements to oneself, but " + std::to_string(output_counts[rank]) +
                 " from oneself");
}

Operation checked_message(Op op, const Communicator& group, at::Tensor tensor, int peer, int tag) {
  check_tensor(op, group, tensor);
  check_rank(op, "peer", peer, group.size());
  if (tag < 0 || tag > kMaxAnyTag) {
    refuse(op, "tag " + std::to_string(tag) + " is not between 0 and " + std::to_string(kMaxTag));
  }
  const Call call{.elements = tensor.numel(), .peer = peer, .tag = tag, .op = op, .dtype = tensor.scalar_type()};
  return {.call = call, .output = std::move(tensor)};
}

// Returns the number of elements of an allocation. The bytes of all ranks together must be countable.
std::int64_t count_elements(Op op, at::IntArrayRef sizes, std::size_t item, int ranks) {
  const auto bytes_of_each = static_cast<std::int64_t>(item) * ranks;
  std::int64_t elements = 1, bytes = 0;
  for (const auto size : sizes) {
    if (size < 0) refuse(op, "a negative size, " + std::to_string(size));
    if (__builtin_mul_overflow(elements, size, &elements)) elements = INT64_MAX;
  }
  if (__builtin_mul_overflow(elements, bytes_of_each, &bytes) || bytes > INT64_MAX / 2) {
    refuse(op, "more bytes than an address can count");
  }
  return elements;
}

}  // namespace

Operation checked_broadcast(const Communicator& group, at::Tensor tensor, int root) {
  check_tensor(Op::kBroadcast, group, tensor);
  check_rank(Op::kBroadcast, "root", root, group.size());
  const Call call{.elements = tensor.numel(), .peer = root, .op = Op::kBroadcast, .dtype = tensor.scalar_type()};
  return {.call = call, .output = std::move(tensor)};
}

Operation checked_reduce(const Communicator& group, at::Tensor tensor, Reduction op, int root) {
  check_tensor(Op::kReduce, group, tensor);
  check_rank(Op::kReduce, "root", root, group.size());
  check_reduction(Op::kReduce, op, tensor.scalar_type());
  const Call call{.elements = tensor.numel(),
                  .detail = hash_of(op),
                  .peer = root,
                  .op = Op::kReduce,
                  .dtype = tensor.scalar_type(),
                  .reduction = op.kind()};
  return {.call = call, .output = std::move(tensor), .reduction = std::move(op)};
}

Operation checked_all_reduce(const Communicator& group, at::Tensor tensor, Reduction op) {
  check_tensor(Op::kAllReduce, group, tensor);
  check_reduction(Op::kAllReduce, op, tensor.scalar_type());
  const Call call{.elements = tensor.numel(),
                  .detail = hash_of(op),
                  .op = Op::kAllReduce,
                  .dtype = tensor.scalar_type(),
                  .reduction = op.kind()};
  return {.call = call, .output = std::move(tensor), .reduction = std::move(op)};
}

Operation checked_reduce_scatter(const Communicator& group, at::Tensor output, at::Tensor input, Reduction op,
                                 Counts counts) {
  check_pair(Op::kReduceScatter, group, output, input);
  check_reduction(Op::kReduceScatter, op, input.scalar_type());
  check_counts(Op::kReduceScatter, counts, group.size());
  check_part(Op::kReduceScatter, "output", output.numel(), counts, group.rank());
  check_whole(Op::kReduceScatter, "input", input.numel(), counts, group.size(), output.numel());
  counts = without_equal(counts);
  const Call call{.elements = input.numel(),
                  .detail = mix(hash_of(op), hash_of(counts)),
                  .op = Op::kReduceScatter,
                  .dtype = input.scalar_type(),
                  .reduction = op.kind()};
  return {.call = call,
          .output = std::move(output),
          .input = std::move(input),
          .reduction = std::move(op),
          .input_counts = counts.vec()};
}

Operation checked_all_gather(const Communicator& group, at::Tensor output, at::Tensor input, Counts counts) {
  check_pair(Op::kAllGather, group, output, input);
  check_counts(Op::kAllGather, counts, group.size());
  check_part(Op::kAllGather, "input", input.numel(), counts, group.rank());
  check_whole(Op::kAllGather, "output", output.numel(), counts, group.size(), input.numel());
  counts = without_equal(counts);
  const Call call{
      .elements = output.numel(), .detail = hash_of(counts), .op = Op::kAllGather, .dtype = input.scalar_type()};
  return {.call = call, .output = std::move(output), .input = std::move(input), .input_counts = counts.vec()};
}

Operation checked_gather(const Communicator& group, at::Tensor output, at::Tensor input, int root, Counts counts) {
  check_tensor(Op::kGather, group, input, "input");
  check_rank(Op::kGather, "root", root, group.size());
  check_counts(Op::kGather, counts, group.size());
  check_part(Op::kGather, "input", input.numel(), counts, group.rank());
  if (group.rank() == root) {
    check_pair(Op::kGather, group, output, input);
    check_whole(Op::kGather, "output", output.numel(), counts, group.size(), input.numel());
  }
  const Call call{.elements = whole_of(counts, input.numel(), group.size()),
                  .detail = hash_of(counts),
                  .peer = root,
                  .op = Op::kGather,
                  .dtype = input.scalar_type()};
  return {.call = call, .output = std::move(output), .input = std::move(input), .input_counts = counts.vec()};
}

Operation checked_scatter(const Communicator& group, at::Tensor output, at::Tensor input, int root, Counts counts) {
  check_tensor(Op::kScatter, group, output, "output");
  check_rank(Op::kScatter, "root", root, group.size());
  check_counts(Op::kScatter, counts, group.size());
  check_part(Op::kScatter, "output", output.numel(), counts, group.rank());
  if (group.rank() == root) {
    check_pair(Op::kScatter, group, output, input);
    check_whole(Op::kScatter, "input", input.numel(), counts, group.size(), output.numel());
  }
  const Call call{.elements = whole_of(counts, output.numel(), group.size()),
                  .detail = hash_of(counts),
                  .peer = root,
                  .op = Op::kScatter,
                  .dtype = output.scalar_type()};
  return {.call = call, .output = std::move(output), .input = std::move(input), .input_counts = counts.vec()};
}

Operation checked_all_to_all(const Communicator& group, at::Tensor output, at::Tensor input, Counts output_counts,
                             Counts input_counts) {
  check_pair(Op::kAllToAll, group, output, input);
  if (output_counts.empty() != input_counts.empty()) {
    refuse(Op::kAllToAll, "give counts for both the input and the output, or for neither");
  }
  check_counts(Op::kAllToAll, output_counts, group.size());
  check_counts(Op::kAllToAll, input_counts, group.size());
  const bool even = input_counts.empty();
  if (even && input.numel() % group.size() != 0) {
    refuse(Op::kAllToAll,
           std::to_string(input.numel()) + " elements are not " + std::to_string(group.size()) + " equal parts");
  }
  check_whole(Op::kAllToAll, "input", input.numel(), input_counts, group.size(), input.numel() / group.size());
  check_whole(Op::kAllToAll, "output", output.numel(), output_counts, group.size(), input.numel() / group.size());
  check_own_counts(Op::kAllToAll, output_counts, input_counts, group.rank());
  const Call call{
      .elements = even ? input.numel() : 0, .detail = !even, .op = Op::kAllToAll, .dtype = input.scalar_type()};
  return {.call = call,
          .output = std::move(output),
          .input = std::move(input),
          .output_counts = output_counts.vec(),
          .input_counts = input_counts.vec()};
}

Operation checked_send(const Communicator& group, at::Tensor tensor, int peer, int tag) {
  return checked_message(Op::kSend, group, std::move(tensor), peer, tag);
}

Operation checked_recv(const Communicator& group, at::Tensor tensor, int peer, int tag) {
  return checked_message(Op::kRecv, group, std::move(tensor), peer, tag);
}

Allocation checked_allocation(const Communicator& group, Op op, at::IntArrayRef sizes, at::TensorOptions options) {
  check_device(op, group, options.device(), "memory");
  const Call call{.elements = count_elements(op, sizes, options.dtype().itemsize(), group.size()),
                  .detail = hash_of(sizes),
                  .op = op,
                  .dtype = c10::typeMetaToScalarType(options.dtype())};
  return {.call = call, .sizes = sizes, .options = options};
}

}  // namespace phalanx
