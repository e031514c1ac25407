// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/library_loop.h"

#include <ATen/Parallel.h>

#include <optional>
#include <string>

#include "phalanx/distributed_data_parallel.h"
#include "phalanx/optimizers.h"
#include "phalanx/world.h"
#include "tools/bench_train/cpp/loop.h"

namespace phalanx::bench_train {
namespace {

// Replaces the optimizer of the loop by the same one of the library, which also zeroes the gradients.
class FusedUpdate final : public Exchange {
 public:
  FusedUpdate(DistributedDataParallel& ddp, double learning_rate)
      : optimizer_(ddp, "sgd", {.keys = {{"lr", std::to_string(learning_rate)}, {"momentum", "0.9"}}}) {}

  void zero_gradients(torch::optim::Optimizer&) override {}
  void update(torch::optim::Optimizer&) override { optimizer_.step(); }

 private:
  FusedOptimizer optimizer_;
};

}  // namespace

void serve_with_library(const LoopJob& job, std::istream& in, std::ostream& out) {
  at::set_num_threads(1);
  World world = init();
  Loop loop(job);
  // Its hooks in the parameters exchange the gradients, so the loop is the same as in a single process.
  DistributedDataParallel ddp(loop.network(), world, {.strategy = job.options.at(0)});
  std::optional<FusedUpdate> fused;
  if (job.has("fused")) loop.use(fused.emplace(ddp, job.learning_rate));
  serve(loop, in, out);
}

}  // namespace phalanx::bench_train
