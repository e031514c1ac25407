// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/mpi_loop.h"

#include <mpi.h>

#include <chrono>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/bench_train/cpp/loop.h"

namespace phalanx::bench_train {
namespace {

// MPI's functions poll, which would disturb the systems that train now. So waiting ranks look for their turn only now
// and then.
constexpr std::chrono::milliseconds kNap{5};

void check_mpi(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error("MPI: " + std::string(text));
}

class MpiExchange final : public Exchange {
 public:
  MpiExchange(Network& network, int size) : parameters_(network.parameters()), size_(size) {}

  void after_backward() override {
    for (const at::Tensor& parameter : parameters_) {
      at::Tensor gradient = parameter.grad();
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, gradient.data_ptr<float>(), static_cast<int>(gradient.numel()), MPI_FLOAT,
                              MPI_SUM, MPI_COMM_WORLD));
      gradient.div_(size_);
    }
  }

 private:
  std::vector<at::Tensor> parameters_;
  int size_;
};

// Rank 0 passes the number of steps to all ranks; 0 ends them. Returns it once all ranks have it.
std::int64_t agree_on_turn(std::int64_t steps) {
  MPI_Request request;
  check_mpi(MPI_Ibcast(&steps, 1, MPI_INT64_T, /*root=*/0, MPI_COMM_WORLD, &request));
  for (int done = 0; !done;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (!done) std::this_thread::sleep_for(kNap);
  }
  check_mpi(MPI_Barrier(MPI_COMM_WORLD));
  return steps;
}

// Replaces the result of this rank by the result of all ranks: the time of the slowest one and the mean losses.
void combine(LoopTurn& turn, int size) {
  for (double* seconds : {&turn.seconds, &turn.backward}) {
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  }
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, turn.losses.data(), static_cast<int>(turn.losses.size()), MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD));
  for (double& loss : turn.losses) loss /= size;
}

}  // namespace

void serve_with_mpi(LoopJob job, std::istream& in, std::ostream& out) {
  check_mpi(MPI_Init(nullptr, nullptr));
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &job.rank));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &job.size));
  Loop loop(job);
  MpiExchange exchange(loop.network(), job.size);
  loop.use(exchange);
  const bool first = job.rank == 0;
  if (first) out << "ready" << std::endl;
  while (const auto steps = agree_on_turn(first ? read_turn(in).value_or(0) : 0)) {
    LoopTurn turn = loop.run(steps);
    combine(turn, job.size);
    if (first) write_turn(turn, out);
  }
  check_mpi(MPI_Finalize());
}

}  // namespace phalanx::bench_train
