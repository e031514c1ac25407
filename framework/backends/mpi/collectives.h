#pragma once

#include "framework/backends/mpi/operation.h"

/// Each function does its collective by MPI's nonblocking one, and blocks until it is complete or throws CommError.
///
/// Where one rank may pass the same memory twice, MPI asks for MPI_IN_PLACE or forbids it; the functions see to that.
/// Reductions are those of op_of(). Of gather, scatter, all_gather and reduce_scatter, all parts together are at most
/// Group::Options::most_elements; the others take any number.
namespace phalanx::mpi {

void broadcast(Operation& operation);
void reduce(Operation& operation);
void all_reduce(Operation& operation);
void reduce_scatter(Operation& operation);
void all_gather(Operation& operation);
void gather(Operation& operation);
void scatter(Operation& operation);
void all_to_all(Operation& operation);
void barrier(Operation& operation);

}  // namespace phalanx::mpi
