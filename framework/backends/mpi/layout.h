// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/backends/mpi/api.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// The parts of a tensor as the arrays that MPI's functions for uneven parts take. The arrays must live until the
/// operation is complete; moving a Layout does not move them.
class Layout {
 public:
  Layout() = default;

  /// Counts in elements. All parts together must have at most INT_MAX elements.
  explicit Layout(const PartLayout& parts);

  /// Builds the arrays for MPI_Alltoallw: a type for each part, and offsets in bytes. Supports any number of elements:
  /// if the parts have more than `most` bytes, each part is one element of its own derived type.
  Layout(const PartLayout& parts, MPI_Datatype type, std::int64_t most);

  ~Layout();
  Layout(Layout&& other) noexcept { *this = std::move(other); }
  Layout& operator=(Layout&& other) noexcept;

  const int* counts() const { return counts_.data(); }
  const int* begins() const { return begins_.data(); }
  const MPI_Datatype* types() const { return types_.data(); }

 private:
  std::vector<int> counts_, begins_;
  std::vector<MPI_Datatype> types_;
  bool owns_types_ = false;
};

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
