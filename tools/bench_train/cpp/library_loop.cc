// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/library_loop.h"

#include <ATen/Parallel.h>

#include "phalanx/distributed_data_parallel.h"
#include "phalanx/world.h"
#include "tools/bench_train/cpp/loop.h"

namespace phalanx::bench_train {

void serve_with_library(const LoopJob& job, std::istream& in, std::ostream& out) {
  at::set_num_threads(1);
  World world = init();
  Loop loop(job);
  // Its hooks in the parameters exchange the gradients, so the loop is that of a single process.
  DistributedDataParallel ddp(loop.network(), world, {.strategy = job.options.at(0)});
  serve(loop, in, out);
}

}  // namespace phalanx::bench_train
