// SPDX-License-Identifier: Apache-2.0
// all_gather and gather: every rank has a part, and all ranks or the root receive all parts.
#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/collectives.h"
#include "framework/backends/shared_memory/copy_sources.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/pieces.h"

namespace phalanx::shared_memory {
namespace {

// The parts of an operation, and the flows that move them through the rings.
class Gathering {
 public:
  Gathering(const Execution& execution, const Elements& output, const Elements& input, const PartLayout& parts,
            const BulkCopy& copy)
      : execution_(execution),
        output_(output),
        input_(input),
        parts_(parts),
        copy_(copy),
        item_(input.item()),
        step_(step_of(largest_part(parts, item_))) {}

  bool fits_payload() const { return largest_part(parts_, item_) <= kPayloadBytes; }
  std::int64_t own_pieces() const { return pieces_of(input_.bytes(), step_); }

  void write_piece(std::int64_t index, std::byte* piece) const {
    const PieceRange range(input_.bytes(), index, step_);
    execution_.group.piece_writer().write(piece, input_.data + range.begin, range.bytes);
  }

  std::byte* place_of(int rank) const { return output_.data + begin_of(parts_, rank, item_); }
  std::size_t bytes_from(int rank) const { return bytes_of(parts_, rank, item_); }

  void copy_own_part() const { copy_(place_of(execution_.rank()), input_.data, input_.bytes()); }

  void read_payloads() const {
    execution_.group.await_posts();
    for (int rank = 0; rank < execution_.size(); ++rank) {
      if (rank != execution_.rank()) execution_.group.read_payload(rank, 0, bytes_from(rank), place_of(rank));
    }
    copy_own_part();
  }

  // Takes the parts of all other ranks from their rings, while this rank writes its own.
  template <class Out>
  void take_parts(Out& out) const {
    auto& group = execution_.group;
    Inflow in(
        group, execution_.sources([&](int peer) { return pieces_of(bytes_from(peer), step_); }),
        [&](int peer, std::int64_t index) { return group.first_piece_of(peer) + index; },
        [&](int peer, std::int64_t index, const std::byte* piece) {
          const PieceRange range(bytes_from(peer), index, step_);
          copy_(place_of(peer) + range.begin, piece, range.bytes);
        });
    run_flows(group, out, in);
    copy_own_part();
  }

  // Copies the inputs of all ranks to this rank's output.
  void pull(const CopySources& sources) const {
    for (int i = 0; i < execution_.size(); ++i) {
      // Begins with this rank, so that not all ranks read from the same rank at a time.
      const int rank = (execution_.rank() + i) % execution_.size();
      sources.copy(place_of(rank), rank, 0, bytes_from(rank));
    }
  }

  // Copies this rank's input to the outputs of all ranks.
  void push(const Addresses& outputs) const {
    const std::size_t at = begin_of(parts_, execution_.rank(), item_);
    for (int i = 0; i < execution_.size(); ++i) {
      copy_(outputs[(execution_.rank() + i) % execution_.size()] + at, input_.data, input_.bytes());
    }
  }

 private:
  const Execution& execution_;
  const Elements& output_;
  const Elements& input_;
  const PartLayout& parts_;
  const BulkCopy& copy_;
  std::size_t item_, step_;
};

}  // namespace

void all_gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts) {
  auto& group = execution.group;
  const BulkCopy copy(all_of(parts, input.item()) * (static_cast<std::size_t>(execution.size()) + 1));
  const Gathering gathering(execution, output, input, parts, copy);
  if (gathering.fits_payload()) {
    execution.post({input.data, input.bytes()});
    return gathering.read_payloads();
  }
  Outflow out(group, gathering.own_pieces(), [&](std::int64_t index, std::byte* piece) {
    gathering.write_piece(index, piece);
    return kAllReaders;
  });
  execution.post_to_copy(input, output, out);
  group.await_posts();
  if (const CopySources sources(execution, copy); sources) {
    gathering.pull(sources);
    group.finish();
  } else if (const auto outputs = execution.outputs(); !outputs.empty()) {
    gathering.push(outputs);
    group.finish();
  } else {
    gathering.take_parts(out);
  }
}

void gather(const Execution& execution, Elements output, Elements input, const PartLayout& parts, int root) {
  auto& group = execution.group;
  const bool is_root = execution.rank() == root;
  const BulkCopy copy(2 * all_of(parts, input.item()));
  const Gathering gathering(execution, output, input, parts, copy);
  if (gathering.fits_payload()) {
    execution.post(is_root ? std::span<const std::byte>() : std::span<const std::byte>(input.data, input.bytes()));
    return is_root ? gathering.read_payloads() : void();
  }
  Outflow out(group, is_root ? 0 : gathering.own_pieces(), [&](std::int64_t index, std::byte* piece) {
    gathering.write_piece(index, piece);
    return root;
  });
  const bool through_ring = execution.post_to_copy(input, {}, out);
  if (!is_root && through_ring) return run_flow_out(group, out);
  group.await_posts();
  if (const CopySources sources(execution, copy); sources) {
    if (!is_root) return group.await_finished(root);
    gathering.pull(sources);
    return group.mark_finished();
  }
  is_root ? gathering.take_parts(out) : run_flow_out(group, out);
}

}  // namespace phalanx::shared_memory
