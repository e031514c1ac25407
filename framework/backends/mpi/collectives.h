// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/backends/mpi/execution.h"

/// Each function performs its collective with MPI's nonblocking call, and blocks until it is complete or throws
/// CommError.
///
/// If a rank passes the same memory twice, MPI requires MPI_IN_PLACE or forbids the call; these functions take care of
/// that. Reductions use op_of(). For gather, scatter, all_gather and reduce_scatter, all parts together must have at
/// most Group::Options::most_elements; the other operations take any number of elements.
namespace phalanx::mpi {

void broadcast(Execution& execution);
void reduce(Execution& execution);
void all_reduce(Execution& execution);
void reduce_scatter(Execution& execution);
void all_gather(Execution& execution);
void gather(Execution& execution);
void scatter(Execution& execution);
void all_to_all(Execution& execution);
void barrier(Execution& execution);

}  // namespace phalanx::mpi
