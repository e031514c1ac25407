// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "tools/bench_train/cpp/job.h"

namespace phalanx::bench_train {

/// Trains under mpirun with an MPI_Allreduce for each parameter after backward, as in C++ programs without a
/// DistributedDataParallel. Rank and size come from MPI. Rank 0 serves (turns.h) for all ranks: the other ranks wait
/// for its turns. Returns when the input of rank 0 ends. Throws std::runtime_error if MPI fails.
void serve_with_mpi(LoopJob job, std::istream& in, std::ostream& out);

}  // namespace phalanx::bench_train
