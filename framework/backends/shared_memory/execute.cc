// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include "framework/backends/shared_memory/collectives.h"

namespace phalanx::shared_memory {
namespace {

Elements elements_in(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel(), tensor.scalar_type()};
}

}  // namespace

void execute(const Execution& execution, const Operation& operation) {
  const Elements output = elements_in(operation.output), input = elements_in(operation.input);
  const Reduction& reduction = operation.reduction;
  const int root = operation.root(), size = execution.size();
  const auto parts = [&] { return PartLayout(operation.input_counts, size, operation.call.elements); };
  switch (operation.call.op) {
    case Op::kBroadcast:
      return broadcast(execution, output, root);
    case Op::kReduce:
      return reduce(execution, output, reduction, root);
    case Op::kAllReduce:
      return all_reduce(execution, output, reduction);
    case Op::kReduceScatter:
      return reduce_scatter(execution, output, input, parts(), reduction);
    case Op::kAllGather:
      return all_gather(execution, output, input, parts());
    case Op::kGather:
      return gather(execution, output, input, parts(), root);
    case Op::kScatter:
      return scatter(execution, output, input, parts(), root);
    case Op::kAllToAll:
      return all_to_all(execution, output, input, PartLayout(operation.output_counts, size, output.count),
                        PartLayout(operation.input_counts, size, input.count));
    case Op::kBarrier:
      return barrier(execution.group, operation.timeout);
    default:
      throw std::logic_error(std::string(to_string(operation.call.op)) + " cannot be launched");
  }
}

}  // namespace phalanx::shared_memory
