// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/collectives.h"
#include "framework/comm/operations/dispatch.h"

namespace phalanx::shared_memory {
namespace {

Elements elements_in(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel(), tensor.scalar_type()};
}

// Calls the functions of collectives.h with the arguments of an operation.
struct Collectives {
  const Execution& execution;
  const Operation& operation;
  Elements output = elements_in(operation.output), input = elements_in(operation.input);

  void broadcast() const { shared_memory::broadcast(execution, output, operation.root()); }
  void reduce() const { shared_memory::reduce(execution, output, operation.reduction, operation.root()); }
  void all_reduce() const { shared_memory::all_reduce(execution, output, operation.reduction); }
  void reduce_scatter() const { shared_memory::reduce_scatter(execution, output, input, parts(), operation.reduction); }
  void all_gather() const { shared_memory::all_gather(execution, output, input, parts()); }
  void gather() const { shared_memory::gather(execution, output, input, parts(), operation.root()); }
  void scatter() const { shared_memory::scatter(execution, output, input, parts(), operation.root()); }
  void all_to_all() const {
    shared_memory::all_to_all(execution, output, input,
                              PartLayout(operation.output_counts, execution.size(), output.count),
                              PartLayout(operation.input_counts, execution.size(), input.count));
  }
  void barrier() const { shared_memory::barrier(execution.group, operation.timeout); }

  PartLayout parts() const { return {operation.input_counts, execution.size(), operation.call.elements}; }
};

}  // namespace

void execute(const Execution& execution, const Operation& operation) {
  dispatch_collective(operation.call.op, Collectives{execution, operation});
}

}  // namespace phalanx::shared_memory
