// SPDX-License-Identifier: Apache-2.0
// Measures an MPI next to a rank (peer_program.h). bench compiles this file with the headers of each MPI.
#include <mpi.h>

#include <cstring>
#include <memory>

#include "tools/bench/mpi_calls.h"
#include "tools/bench/peer_program.h"

namespace phalanx::bench {
namespace {

std::shared_ptr<float> allocate(std::int64_t elements, const std::string& memory) {
  if (memory != "registered") return private_memory(elements);
  void* data = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  check_mpi(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &data));
  std::memset(data, 0, bytes);
  return {static_cast<float*>(data), [](float* allocated) { MPI_Free_mem(allocated); }};
}

Measure prepare(const PeerCase& what) {
  const auto whole = allocate(what.whole, what.memory);
  const std::int64_t elements = other_elements(what);
  const auto other = elements > 0 ? allocate(elements, what.memory) : nullptr;
  const MpiBuffers buffers{whole.get(), other.get(), static_cast<int>(what.whole), static_cast<int>(what.part)};
  return [whole, other, measure = measure_mpi(what.op, buffers)](std::int64_t repeats) { return measure(repeats); };
}

void serve(RankConnection& rank) {
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided));
  rank.send("ready");
  serve_rank(rank, [] { check_mpi(MPI_Barrier(MPI_COMM_WORLD)); }, prepare);
  check_mpi(MPI_Finalize());
}

}  // namespace
}  // namespace phalanx::bench

int main(int count, char** words) { return phalanx::bench::run_peer("mpi_peer", count, words, phalanx::bench::serve); }
