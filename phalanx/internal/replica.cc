// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/replica.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "phalanx/internal/module_tensors.h"

namespace phalanx {
namespace {

std::vector<std::string> describe(const torch::nn::Module& module, const DistributedDataParallelOptions& options) {
  auto lines = phalanx::describe(module);
  lines.push_back("strategy " + options.strategy + ", compression " + options.compression + ", bucket_bytes " +
                  std::to_string(options.bucket_bytes));
  for (const auto& [key, value] : options.strategy_options) lines.push_back("strategy option " + key + ": " + value);
  const auto add = [&](const char* name, bool value) { lines.push_back(name + std::string(value ? " on" : " off")); };
  add("find_unused_parameters", options.find_unused_parameters);
  add("broadcast_buffers", options.broadcast_buffers);
  add("uneven_inputs", options.uneven_inputs);
  add("divide_by_all_ranks", options.divide_by_all_ranks);
  return lines;
}

// Ranks that differ would wait for each other, or exchange the wrong parameters.
NamedTensors trained_parameters(const torch::nn::Module& module, const World& world,
                                const DistributedDataParallelOptions& options) {
  require_same_lines(describe(module, options), world.communicator());
  return tensors_of(module).trained;
}

// Returns the rank with the largest number, the lowest of them if there are several.
int rank_with_most(std::int64_t number, Communicator& group) {
  const at::Tensor all = at::zeros({group.size()}, at::kLong);
  auto* const numbers = all.mutable_data_ptr<std::int64_t>();
  numbers[group.rank()] = number;
  group.all_reduce(all, Reduction::kSum).wait();
  return static_cast<int>(std::max_element(numbers, numbers + all.numel()) - numbers);
}

}  // namespace

DistributedDataParallel::Replica::Replica(const torch::nn::Module& module, const World& world, const Options& options)
    : uneven_inputs_(options.uneven_inputs),
      exchange_(trained_parameters(module, world, options), world.shared_communicator(), options, accumulates_),
      hooks_(exchange_.parameters(),
             [this](std::size_t bucket, std::size_t parameter) { gradient_arrived(bucket, parameter); }) {
  exchange_.attach(Cut::kAnywhere);
  ModuleTensors tensors = tensors_of(module);
  broadcast_values(tensors.constant, 0, world.communicator());
  broadcast_values(tensors.buffers, 0, world.communicator());
  if (options.broadcast_buffers) buffers_ = std::move(tensors.buffers);
}

void DistributedDataParallel::Replica::pause() {
  if (exchange_.traits().frees_gradients) {
    throw ConfigError("DistributedDataParallel: strategy " + exchange_.choice().selected() +
                      " keeps no gradients of its own rank, so no_sync() is not possible; use stage 1");
  }
  ++pauses_;
  *accumulates_ = true;
}

void DistributedDataParallel::Replica::resume() { *accumulates_ = --pauses_ > 0; }

// Runs in backward, before the hooks of the strategy.
void DistributedDataParallel::Replica::gradient_arrived(std::size_t bucket, std::size_t parameter) {
  if (finished_) return;
  const int backward = torch::autograd::get_current_graph_task_id();
  if (!*accumulates_ && backward != step_.backward) {
    step_.backward = backward;
    begin_backward();
  }
  exchange_.take(bucket, parameter);
}

void DistributedDataParallel::Replica::begin_backward() {
  if (exchange_.traits().shards_update && !take_step_) {
    throw Error("DistributedDataParallel: with strategy " + exchange_.choice().selected() +
                " each rank updates a part of the parameters; make a phalanx::FusedOptimizer before backward()");
  }
  if (step_.exchanged && !exchange_.ends_with_backward()) {
    throw Error("DistributedDataParallel: strategy " + exchange_.choice().selected() +
                " needs after_step() after each step of the optimizer; to accumulate gradients, use no_sync()");
  }
  exchange_.begin(/*with_data=*/true);
  torch::autograd::Engine::get_default_engine().queue_callback([this] { end_backward(); });
}

void DistributedDataParallel::Replica::end_backward() {
  const at::NoGradGuard no_grad;
  step_.backward = -1;
  ++step_.with_data;
  exchange_gradients(/*with_data=*/true);
}

// Returns false if no rank has data.
bool DistributedDataParallel::Replica::exchange_gradients(bool with_data) {
  const auto root = exchange_.complete(step_.number, with_data);
  if (!root) return false;
  step_.exchanged = true;
  if (exchange_.traits().reduces_gradients) broadcast_buffers(*root);
  return true;
}

void DistributedDataParallel::Replica::broadcast_buffers(int root) {
  broadcast_values(buffers_, root, *exchange_.group());
}

void DistributedDataParallel::Replica::after_step() {
  auto& strategy = exchange_.strategy();
  if (!exchange_.ends_with_backward()) {
    exchange_.require_values_in_buckets();
    const at::NoGradGuard no_grad;
    strategy.after_update(step_.number);
    if (!exchange_.traits().reduces_gradients && strategy.replicas_equal()) broadcast_buffers(0);
  }
  ++step_.number;
  step_.exchanged = false;
}

int DistributedDataParallel::Replica::join() {
  if (!uneven_inputs_) {
    throw ConfigError("DistributedDataParallel: join() needs the option uneven_inputs");
  }
  const at::NoGradGuard no_grad;
  while (true) {
    exchange_.begin(/*with_data=*/false);
    if (!exchange_gradients(/*with_data=*/false)) break;
    if (take_step_) take_step_();
  }
  const int root = rank_with_most(step_.with_data, *exchange_.group());
  if (!take_step_) exchange_.broadcast_values(root);
  broadcast_buffers(root);
  exchange_.zero_gradients();
  step_.with_data = 0;
  step_.exchanged = false;
  return root;
}

void DistributedDataParallel::Replica::finish() {
  if (std::exchange(finished_, true)) return;
  const at::NoGradGuard no_grad;
  exchange_.strategy().finish();
  broadcast_buffers(0);
}

void DistributedDataParallel::Replica::attach(Optimizer& optimizer, std::function<void()> take_step) {
  if (take_step_) throw ConfigError("FusedOptimizer: this DistributedDataParallel has one already");
  if (exchange_.traits().shards_update && optimizer.cut() != Cut::kAnywhere) exchange_.attach(optimizer.cut());
  optimizer.attach(exchange_.slices());
  exchange_.strategy().attach_state(optimizer.state());
  take_step_ = std::move(take_step);
}

}  // namespace phalanx
