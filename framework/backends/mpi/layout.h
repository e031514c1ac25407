// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/comm/part_layout.h"

namespace phalanx::mpi {

/// Parts of a tensor in MPI's words: the arrays that its functions for uneven parts take. They must stay until the
/// operation is complete; moving a Layout does not move them.
class Layout {
 public:
  Layout() = default;

  /// In elements, of which all parts together must be at most INT_MAX.
  explicit Layout(const PartLayout& parts);

  /// As MPI_Alltoallw wants it: a type for each part, begins in bytes. Takes any number of elements: where more than
  /// `most` bytes are to be counted, each part is one element of a type of its own.
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

}  // namespace phalanx::mpi
