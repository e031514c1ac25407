#pragma once

#include <cstddef>

#include "framework/backends/direct/bulk_copy.h"
#include "framework/backends/direct/operation.h"

namespace phalanx::direct {

/// What every rank has posted as its input of the current operation, for this rank to copy from: memory that it
/// reaches, or that the fabric fetches. After the first meeting; all ranks get the same answer.
class Sources {
 public:
  /// `touched`: see BulkCopy.
  Sources(const Operation& operation, std::size_t touched)
      : operation_(operation), addresses_(operation.inputs()), fetched_(operation.input_is_fetched()), copy_(touched) {}

  /// Whether there is a way to copy from all of them.
  explicit operator bool() const { return !addresses_.empty(); }

  /// From byte `begin` of what `rank` has posted. Throws CommError where that rank is gone.
  void copy(std::byte* to, int rank, std::size_t begin, std::size_t bytes) const {
    const std::byte* from = addresses_[rank] + begin;
    if (fetched_ && rank != operation_.rank()) {
      operation_.group.fabric().fetch(rank, to, from, bytes);
    } else {
      copy_(to, from, bytes);
    }
  }

 private:
  const Operation& operation_;
  Addresses addresses_;
  bool fetched_;
  BulkCopy copy_;
};

}  // namespace phalanx::direct
