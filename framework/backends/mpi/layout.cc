// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/layout.h"

#include <utility>

#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/types.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

Layout::Layout(const PartLayout& parts) {
  for (int rank = 0; rank < parts.ranks(); ++rank) {
    counts_.push_back(static_cast<int>(parts.count(rank)));
    begins_.push_back(static_cast<int>(parts.begin(rank)));
  }
}

Layout::Layout(const PartLayout& parts, MPI_Datatype type, std::int64_t most) {
  int size = 0;
  check(MPI_Type_size(type, &size), "MPI_Type_size");
  owns_types_ = parts.total() * size > most;
  for (int rank = 0; rank < parts.ranks(); ++rank) {
    const auto count = parts.count(rank), begin = parts.begin(rank) * size;
    counts_.push_back(owns_types_ ? 1 : static_cast<int>(count));
    begins_.push_back(owns_types_ ? 0 : static_cast<int>(begin));
    types_.push_back(owns_types_ ? make_run(type, begin, count, most) : type);
  }
}

Layout::~Layout() {
  if (!owns_types_) return;
  for (auto& type : types_) MPI_Type_free(&type);
}

Layout& Layout::operator=(Layout&& other) noexcept {
  std::swap(counts_, other.counts_);
  std::swap(begins_, other.begins_);
  std::swap(types_, other.types_);
  std::swap(owns_types_, other.owns_types_);
  return *this;
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
