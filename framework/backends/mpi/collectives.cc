// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/collectives.h"

#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstring>

#include "framework/backends/mpi/types.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

MPI_Datatype type_of(const at::Tensor& tensor) { return mpi::type_of(tensor.scalar_type()); }

void finish(const Execution& execution, const at::Tensor& result) {
  const Reduction& reduction = execution.operation.reduction;
  reduction.finish(result.scalar_type(), result.data_ptr(), result.numel(), execution.group->size());
}

bool uneven(const Execution& execution) { return !execution.operation.input_counts.empty(); }

// Returns the parts of the whole tensor. `whole` is its number of elements, which is used only if all parts are equal.
PartLayout parts_of(const Execution& execution, std::int64_t whole) {
  return {execution.operation.input_counts, execution.group->size(), whole};
}

// Returns the address of a rank's part of a tensor. It creates no view, which would cost as much as a short message.
void* part_of(const at::Tensor& whole, const PartLayout& parts, int rank) {
  return static_cast<std::byte*>(whole.data_ptr()) +
         parts.begin(rank) * static_cast<std::int64_t>(whole.element_size());
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

bool overlap(const at::Tensor& one, const at::Tensor& other) {
  const auto* a = static_cast<const std::byte*>(one.data_ptr());
  const auto* b = static_cast<const std::byte*>(other.data_ptr());
  return a < b + other.nbytes() && b < a + one.nbytes();
}

}  // namespace

void Collectives::broadcast() const {
  const auto& tensor = execution.operation.output;
  execution.complete_all(tensor, [&](void* data, int count, MPI_Comm comm, MPI_Request* request) {
    return MPI_Ibcast(data, count, type_of(tensor), execution.operation.root(), comm, request);
  });
}

void Collectives::reduce() const {
  const auto& tensor = execution.operation.output;
  const auto type = type_of(tensor);
  const auto op = op_of(execution.operation.reduction, tensor.scalar_type());
  const int root = execution.operation.root();
  const bool is_root = execution.group->rank() == root;
  execution.complete_all(tensor, [&](void* data, int count, MPI_Comm comm, MPI_Request* request) {
    return MPI_Ireduce(is_root ? MPI_IN_PLACE : data, is_root ? data : nullptr, count, type, op, root, comm, request);
  });
  if (is_root) finish(execution, tensor);
}

void Collectives::all_reduce() const {
  const auto& tensor = execution.operation.output;
  const auto type = type_of(tensor);
  const auto op = op_of(execution.operation.reduction, tensor.scalar_type());
  execution.complete_all(tensor, [&](void* data, int count, MPI_Comm comm, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, count, type, op, comm, request);
  });
  finish(execution, tensor);
}

void Collectives::reduce_scatter() const {
  const at::Tensor &output = execution.operation.output, &input = execution.operation.input;
  const auto type = type_of(input);
  const auto op = op_of(execution.operation.reduction, input.scalar_type());
  // MPI's buffers must not overlap, and its in-place variant would overwrite the parts of the other ranks.
  execution.scratch = overlap(output, input) ? at::empty({output.numel()}, output.options()) : output;
  void* const result = execution.scratch.data_ptr();
  if (uneven(execution)) {
    execution.layout = Layout(parts_of(execution, 0));
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Ireduce_scatter(input.data_ptr(), result, execution.layout.counts(), type, op, comm, request);
    });
  } else {
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      const auto count = static_cast<int>(output.numel());
      return MPI_Ireduce_scatter_block(input.data_ptr(), result, count, type, op, comm, request);
    });
  }
  copy(output.data_ptr(), result, output.nbytes());
  finish(execution, output);
}

// Works in place on all ranks, because MPI requires it on all ranks or on none.
void Collectives::all_gather() const {
  const at::Tensor &output = execution.operation.output, &input = execution.operation.input;
  const auto type = type_of(output);
  const auto parts = parts_of(execution, output.numel());
  copy(part_of(output, parts, execution.group->rank()), input.data_ptr(), input.nbytes());
  if (uneven(execution)) {
    execution.layout = Layout(parts);
    const auto& layout = execution.layout;
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, type, output.data_ptr(), layout.counts(), layout.begins(), type, comm,
                             request);
    });
  } else {
    const auto count = static_cast<int>(input.numel());
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Iallgather(MPI_IN_PLACE, 0, type, output.data_ptr(), count, type, comm, request);
    });
  }
}

void Collectives::gather() const {
  const at::Tensor &output = execution.operation.output, &input = execution.operation.input;
  const int root = execution.operation.root();
  const auto type = type_of(input);
  const auto count = static_cast<int>(input.numel());
  const bool is_root = execution.group->rank() == root;
  const auto parts = parts_of(execution, execution.operation.call.elements);
  void* const all = is_root ? output.data_ptr() : nullptr;
  void* mine = input.data_ptr();
  if (is_root && part_of(output, parts, root) == mine) mine = MPI_IN_PLACE;
  if (uneven(execution)) {
    execution.layout = Layout(parts);
    const auto& layout = execution.layout;
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Igatherv(mine, count, type, all, layout.counts(), layout.begins(), type, root, comm, request);
    });
  } else {
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Igather(mine, count, type, all, count, type, root, comm, request);
    });
  }
}

void Collectives::scatter() const {
  const at::Tensor &output = execution.operation.output, &input = execution.operation.input;
  const int root = execution.operation.root();
  const auto type = type_of(output);
  const auto count = static_cast<int>(output.numel());
  const bool is_root = execution.group->rank() == root;
  const auto parts = parts_of(execution, execution.operation.call.elements);
  void* const all = is_root ? input.data_ptr() : nullptr;
  void* mine = output.data_ptr();
  if (is_root && part_of(input, parts, root) == mine) mine = MPI_IN_PLACE;
  if (uneven(execution)) {
    execution.layout = Layout(parts);
    const auto& layout = execution.layout;
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Iscatterv(all, layout.counts(), layout.begins(), type, mine, count, type, root, comm, request);
    });
  } else {
    execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Iscatter(all, count, type, mine, count, type, root, comm, request);
    });
  }
}

// Uneven parts always use derived types, because the peers do not know whether the parts of this rank are long.
void Collectives::all_to_all() const {
  const at::Tensor &output = execution.operation.output, &input = execution.operation.input;
  const auto type = type_of(output);
  const int size = execution.group->size();
  const auto most = execution.group->options().max_elements;
  if (!uneven(execution) && input.numel() <= most) {
    const auto count = static_cast<int>(input.numel() / size);
    return execution.complete([&](MPI_Comm comm, MPI_Request* request) {
      return MPI_Ialltoall(input.data_ptr(), count, type, output.data_ptr(), count, type, comm, request);
    });
  }
  const auto& in = execution.layout = Layout(parts_of(execution, input.numel()), type, most);
  const auto& out = execution.output_layout =
      Layout(PartLayout(execution.operation.output_counts, size, output.numel()), type, most);
  execution.complete([&](MPI_Comm comm, MPI_Request* request) {
    return MPI_Ialltoallw(input.data_ptr(), in.counts(), in.begins(), in.types(), output.data_ptr(), out.counts(),
                          out.begins(), out.types(), comm, request);
  });
}

void Collectives::barrier() const { execution.complete(MPI_Ibarrier); }

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
