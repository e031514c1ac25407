// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/backends/shared_memory/execution.h"
#include "framework/backends/shared_memory/part_bytes.h"
#include "framework/backends/shared_memory/part_pieces.h"

namespace phalanx::shared_memory {

/// Moves inputs that hold a different part for each rank: as shares of the payloads if all parts are small, otherwise
/// as pieces in the rings. A rank reads its own part directly from its input.
class PartFlow {
 public:
  /// `input` is this rank's; not read on ranks that send nothing. layout_of(rank) is the layout of the input of a rank,
  /// and `most` the bytes of the largest part that any rank sends.
  template <class LayoutOf>
  PartFlow(const Execution& execution, const Elements& input, std::size_t item, std::size_t most,
           const LayoutOf& layout_of)
      : execution_(execution),
        input_(input),
        parts_(layout_of(execution.rank())),
        item_(item),
        share_(share_of(most)),
        step_(step_of(most)) {
    if (fits_payload()) return;
    for (int rank = 0; rank < execution.size(); ++rank) pieces_.emplace_back(layout_of(rank), rank, item, step_);
  }

  bool fits_payload() const { return share_ * static_cast<std::size_t>(execution_.size() - 1) <= kPayloadBytes; }

  /// Returns where the part for a rank begins in this rank's input, in bytes.
  std::size_t begin_in_input(int rank) const { return begin_of(parts_, rank, item_); }

  /// Returns this rank's payload, which has a share for every other rank. Valid until the next operation.
  std::span<const std::byte> payload() const {
    std::byte* const own = execution_.group.payload_buffer(execution_.rank());
    for (int rank = 0; rank < parts_.ranks(); ++rank) {
      if (rank == execution_.rank()) continue;
      copy_bytes(own + share_ * slot(execution_.rank(), rank), input_.data + begin_in_input(rank),
                 bytes_of(parts_, rank, item_));
    }
    return {own, share_ * static_cast<std::size_t>(execution_.size() - 1)};
  }

  /// Copies this rank's share in the payload of `sender`, whose post was awaited.
  void read_share(int sender, std::byte* to, std::size_t bytes) const {
    execution_.group.read_payload(sender, share_ * slot(sender, execution_.rank()), bytes, to);
  }

  std::size_t step() const { return step_; }
  std::int64_t own_pieces() const { return pieces_[execution_.rank()].total(); }

  /// Returns the function that writes this rank's pieces, for an Outflow. This object must outlive it.
  auto writer() const {
    return [this, next = PartPieces::Cursor(pieces_[execution_.rank()])](std::int64_t, std::byte* piece) mutable {
      const int reader = next.reader();
      const PieceRange range(bytes_of(parts_, reader, item_), next.index(), step_);
      execution_.group.piece_writer().write(piece, input_.data + begin_in_input(reader) + range.begin, range.bytes);
      next.advance();
      return reader;
    };
  }

  /// Returns the number of piece `index` of this rank's part in the ring of `sender`, whose post was awaited.
  std::uint64_t number(int sender, std::int64_t index) const {
    return execution_.group.first_piece_of(sender) +
           static_cast<std::uint64_t>(pieces_[sender].place(execution_.rank(), index));
  }

 private:
  static std::size_t slot(int sender, int receiver) {
    return static_cast<std::size_t>(receiver < sender ? receiver : receiver - 1);
  }

  const Execution& execution_;
  const Elements& input_;
  const PartLayout& parts_;
  std::size_t item_, share_, step_;
  c10::SmallVector<PartPieces, 4> pieces_;  // by owner; empty if the payloads suffice
};

}  // namespace phalanx::shared_memory
