// SPDX-License-Identifier: Apache-2.0
// A rank of a system that C++ programs use today instead of Phalanx, measured in turns: cpp_peer JOB, where JOB is
// JSON. The first option of the job names the system.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "tools/bench_train/cpp/job.h"
#include "tools/bench_train/cpp/loop.h"
#include "tools/bench_train/cpp/mpi_loop.h"
#include "tools/bench_train/cpp/reducer_exchange.h"

namespace phalanx::bench_train {
namespace {

void serve_alone(const LoopJob& job) {
  Loop loop(job);
  serve(loop, std::cin, std::cout);
}

void serve_with_reducer(const LoopJob& job) {
  Loop loop(job);
  const auto exchange = make_reducer_exchange(job, loop.network());
  loop.use(*exchange);
  serve(loop, std::cin, std::cout);
  ::_exit(0);  // tearing Gloo down waits for peers
}

int run(const std::string& json) {
  at::set_num_threads(1);
  const LoopJob job = read_loop_job(json);
  const std::string& system = job.options.at(0);
  if (system == "alone") return serve_alone(job), 0;
  if (system == "reducer") return serve_with_reducer(job), 0;
  if (system == "mpi") return serve_with_mpi(job, std::cin, std::cout), 0;
  throw std::invalid_argument("there is no system " + system);
}

}  // namespace
}  // namespace phalanx::bench_train

int main(int argc, char** argv) {
  try {
    if (argc == 2) return phalanx::bench_train::run(argv[1]);
    std::fputs("usage: cpp_peer JOB\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpp_peer: %s\n", error.what());
  }
  return 1;
}
