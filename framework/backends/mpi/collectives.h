// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/backends/mpi/execution.h"

/// Each function does its collective by MPI's nonblocking one, and blocks until it is complete or throws CommError.
///
/// Where one rank may pass the same memory twice, MPI asks for MPI_IN_PLACE or forbids it; the functions see to that.
/// Reductions are those of op_of(). Of gather, scatter, all_gather and reduce_scatter, all parts together are at most
/// Group::Options::most_elements; the others take any number.
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
