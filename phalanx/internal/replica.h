// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/strategies/parameter_hooks.h"
#include "phalanx/distributed_data_parallel.h"
#include "phalanx/internal/exchange.h"

namespace phalanx {

/// A DistributedDataParallel at an address that hooks can keep: it notices the beginning and the end of each backward,
/// counts steps, and has the ranks exchange their gradients.
///
/// A backward is noticed by its first gradient. Its end is reported by a callback that autograd's engine runs before
/// backward() returns.
class DistributedDataParallel::Replica {
 public:
  Replica(const torch::nn::Module& module, const World& world, const Options& options);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// Begin and end a scope of no_sync().
  void pause();
  void resume();

  int join();
  void after_step();
  void finish();

  /// Attaches an optimizer to the parameters that this rank updates. From now on join() calls `take_step` for steps of
  /// other ranks. Collective.
  void attach(Optimizer& optimizer, std::function<void()> take_step);
  void detach() { take_step_ = nullptr; }

  Exchange& exchange() { return exchange_; }

 private:
  struct Step {
    std::int64_t number = 0;
    std::int64_t with_data = 0;  // steps since the last join() for which this rank had data
    bool exchanged = false;      // after_step() has not been called yet
    int backward = -1;           // the graph task whose end is awaited
  };

  void gradient_arrived(std::size_t bucket, std::size_t parameter);
  void begin_backward();
  void end_backward();
  bool exchange_gradients(bool with_data);
  void broadcast_buffers(int root);

  std::vector<at::Tensor> buffers_;  // that are kept equal; empty without broadcast_buffers
  bool uneven_inputs_;
  std::shared_ptr<bool> accumulates_ = std::make_shared<bool>(false);
  int pauses_ = 0;  // scopes of no_sync()
  bool finished_ = false;
  Exchange exchange_;
  ParameterHooks hooks_;
  std::function<void()> take_step_;  // of a FusedOptimizer; null without one
  Step step_;
};

}  // namespace phalanx
