#include "framework/collectives/out_of_place.h"

#include <ATen/MemoryOverlap.h>

#include <stdexcept>
#include <string>

#include "framework/collectives/steps.h"
#include "framework/comm/arguments.h"

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
  check_all_reduce(input, op);
  const Call call = check_all_reduce(output, op);
  check_pair(Op::kAllReduce, output, input);
  return group->run(call, [group, output, input, op] {
    collectives::copy(output, input);
    group->all_reduce(output, op).wait();
  });
}

// All ranks launch the same, whether they have something to copy or not: so they can be compared.
Work reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op, int root) {
  const Call call = check_reduce(*group, input, op, root);
  if (group->rank() == root) {
    check_reduce(*group, output, op, root);
    check_pair(Op::kReduce, output, input);
  }
  return group->run(call, [group, output, input, op, root] {
    if (group->rank() != root) return group->reduce(input, op, root).wait();
    collectives::copy(output, input);
    group->reduce(output, op, root).wait();
  });
}

Work broadcast(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, int root) {
  const Call call = check_broadcast(*group, output, root);
  if (group->rank() == root) {
    check_broadcast(*group, input, root);
    check_pair(Op::kBroadcast, output, input);
  }
  return group->run(call, [group, output, input, root] {
    if (group->rank() == root) collectives::copy(output, input);
    group->broadcast(output, root).wait();
  });
}

}  // namespace phalanx
