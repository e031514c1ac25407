// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/out_of_place.h"

#include <ATen/MemoryOverlap.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "framework/collectives/steps.h"
#include "framework/comm/operations/arguments.h"

namespace phalanx {
namespace {

void check_pair(Op op, const at::Tensor& output, const at::Tensor& input) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(std::string(to_string(op)) + ": " + why);
  };
  if (output.scalar_type() != input.scalar_type()) {
    refuse(std::string("the input is ") + c10::toString(input.scalar_type()) + ", the output " +
           c10::toString(output.scalar_type()));
  }
  if (output.numel() != input.numel()) {
    refuse("the input has " + std::to_string(input.numel()) + " elements, the output " +
           std::to_string(output.numel()));
  }
  if (at::get_overlap_status(output, input) == at::MemOverlapStatus::Partial) {
    refuse("input and output overlap in part; pass the same memory or different memory");
  }
}

}  // namespace

Work all_reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op) {
  checked_all_reduce(*group, input, op);
  Operation operation = checked_all_reduce(*group, output, std::move(op));
  check_pair(Op::kAllReduce, output, input);
  const Call call = operation.call;
  return group->run(call, [group, input, operation = std::move(operation)]() mutable {
    collectives::copy(operation.output, input);
    group->launch(std::move(operation)).wait();
  });
}

// All ranks launch the same operation, even if they have nothing to copy, so that checks can compare the ranks' calls.
Work reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op, int root) {
  Operation operation = checked_reduce(*group, input, op, root);
  const Call call = operation.call;
  const bool is_root = group->rank() == root;
  if (is_root) {
    operation = checked_reduce(*group, output, std::move(op), root);
    check_pair(Op::kReduce, output, input);
  }
  return group->run(call, [group, input, is_root, operation = std::move(operation)]() mutable {
    if (is_root) collectives::copy(operation.output, input);
    group->launch(std::move(operation)).wait();
  });
}

Work broadcast(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, int root) {
  Operation operation = checked_broadcast(*group, output, root);
  const Call call = operation.call;
  const bool is_root = group->rank() == root;
  if (is_root) {
    checked_broadcast(*group, input, root);
    check_pair(Op::kBroadcast, output, input);
  }
  return group->run(call, [group, input, is_root, operation = std::move(operation)]() mutable {
    if (is_root) collectives::copy(operation.output, input);
    group->launch(std::move(operation)).wait();
  });
}

}  // namespace phalanx
