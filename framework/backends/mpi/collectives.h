// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/execution.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Performs one operation with the function that is named like it. Each calls MPI's nonblocking function, and blocks
/// until the collective is complete or throws CommError.
///
/// If a rank passes the same memory twice, MPI requires MPI_IN_PLACE or forbids the call; these functions take care of
/// that. Reductions use op_of(). For gather, scatter, all_gather and reduce_scatter, all parts together must have at
/// most Group::Options::max_elements; the other operations take any number of elements.
struct Collectives {
  Execution& execution;

  void broadcast() const;
  void reduce() const;
  void all_reduce() const;
  void reduce_scatter() const;
  void all_gather() const;
  void gather() const;
  void scatter() const;
  void all_to_all() const;
  void barrier() const;
};

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
