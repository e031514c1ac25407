// SPDX-License-Identifier: Apache-2.0
// all_gather and gather: every rank has a part, and all ranks or the root receive all parts.
#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/sources.h"

namespace phalanx::shared_memory {
namespace {

bool is_small(const Elements& input, const PartLayout& parts) { return all_of(parts, input.item()) <= kOneStepBytes; }

// `wanted` is true if this rank's output receives the parts.
void gather_through_scratch(const Execution& execution, const Elements& output, const Elements& input,
                            const PartLayout& parts, const BulkCopy& copy, bool wanted) {
  const auto item = input.item();
  const std::size_t most = largest_part(parts, item), step = step_of(most);
  const auto fill = [&](std::byte* own, std::int64_t chunk) {
    const ChunkRange range(input.bytes(), chunk, step);
    execution.copy_in(own, input.data + range.begin, range.bytes);
  };
  const auto drain = [&](const auto& scratch_of, std::int64_t chunk) {
    for (int rank = 0; wanted && rank < execution.size(); ++rank) {
      const ChunkRange range(bytes_of(parts, rank, item), chunk, step);
      const std::size_t at = begin_of(parts, rank, item) + range.begin;
      const bool own = rank == execution.rank();
      copy(output.data + at, own ? input.data + range.begin : scratch_of(rank), range.bytes);
    }
  };
  if (is_small(input, parts)) return execution.in_one_step(most, fill, drain);
  execution.through_scratch(chunks_of(most, step), fill, drain);
}

// Copies the inputs of all ranks to this rank's output.
void pull(const Execution& execution, const Elements& output, const Sources& sources, const PartLayout& parts) {
  const auto item = output.item();
  for (int i = 0; i < execution.size(); ++i) {
    // Begins with this rank, so that not all ranks read from the same rank at a time.
    const int rank = (execution.rank() + i) % execution.size();
    sources.copy(output.data + begin_of(parts, rank, item), rank, 0, bytes_of(parts, rank, item));
  }
}

// Copies this rank's input to the outputs of all ranks.
void push(const Execution& execution, const Elements& input, const Addresses& outputs, const PartLayout& parts,
          const BulkCopy& copy) {
  const std::size_t at = begin_of(parts, execution.rank(), input.item());
  for (int i = 0; i < execution.size(); ++i) {
    copy(outputs[(execution.rank() + i) % execution.size()] + at, input.data, input.bytes());
  }
}

}  // namespace

void all_gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts) {
  const std::size_t touched = all_of(parts, input.item()) * (static_cast<std::size_t>(execution.size()) + 1);
  const BulkCopy copy(touched);
  if (is_small(input, parts)) return gather_through_scratch(execution, output, input, parts, copy, true);
  execution.exchange_posts_to_copy(input, output, touched);
  if (const Sources sources(execution, copy); sources) {
    pull(execution, output, sources, parts);
    execution.group.barrier();
  } else if (const auto outputs = execution.outputs(); !outputs.empty()) {
    push(execution, input, outputs, parts, copy);
    execution.group.barrier();
  } else {
    gather_through_scratch(execution, output, input, parts, copy, true);
  }
}

void gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root) {
  const bool is_root = execution.rank() == root;
  const std::size_t touched = 2 * all_of(parts, input.item());
  const BulkCopy copy(touched);
  if (is_small(input, parts)) return gather_through_scratch(execution, output, input, parts, copy, is_root);
  execution.exchange_posts_to_copy(input, {}, touched);
  if (const Sources sources(execution, copy); sources) {
    if (is_root) pull(execution, output, sources, parts);
    execution.group.barrier();
  } else {
    gather_through_scratch(execution, output, input, parts, copy, is_root);
  }
}

}  // namespace phalanx::shared_memory
