// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/execution.h"

namespace phalanx::shared_memory {

/// The inputs that all ranks have posted for the current operation, from which this rank copies. They are in memory
/// that it reaches or that the fabric fetches. Must be constructed after all posts were awaited; all ranks get the same
/// answer.
class CopySources {
 public:
  CopySources(const Execution& execution, const BulkCopy& copy)
      : execution_(execution), addresses_(execution.inputs()), fetched_(execution.input_is_fetched()), copy_(copy) {}

  /// Returns true if this rank can copy from all of them.
  explicit operator bool() const { return !addresses_.empty(); }

  /// Returns their addresses if this rank reaches them, otherwise an empty span.
  std::span<std::byte* const> reached() const {
    return fetched_ ? std::span<std::byte* const>() : std::span<std::byte* const>(addresses_);
  }

  /// Copies from byte `begin` of the input of `rank`. Throws CommError if that rank is gone.
  void copy(std::byte* to, int rank, std::size_t begin, std::size_t bytes) const {
    const std::byte* from = addresses_[rank] + begin;
    if (fetched_ && rank != execution_.rank()) {
      execution_.group.fabric().fetch(rank, to, from, bytes);
    } else {
      copy_(to, from, bytes);
    }
  }

 private:
  const Execution& execution_;
  Addresses addresses_;
  bool fetched_;
  const BulkCopy& copy_;
};

}  // namespace phalanx::shared_memory
