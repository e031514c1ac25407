// SPDX-License-Identifier: Apache-2.0
#include "engine/build/block_costs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/csrc/profiler/util.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/build/zero_inputs.h"
#include "engine/step/computation.h"
#include "framework/parallel/autocast.h"
#include "models/block_chain.h"

namespace phalanx {
namespace {

// Counts the operations of matrix products and convolutions that this thread calls during the counter's lifetime. The
// count follows from shapes, so it is the same in every run, unlike measured times.
class FlopCount {
 public:
  FlopCount()
      : outer_(current),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    current = this;
  }
  ~FlopCount() {
    at::removeCallback(handle_);
    current = outer_;
  }
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  double count() const { return count_; }

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    const auto arguments = torch::profiler::impl::saveExtraArgs(function);
    current->count_ += static_cast<double>(torch::profiler::impl::computeFlops(function.name(), arguments));
    return nullptr;
  }

  static thread_local FlopCount* current;

  FlopCount* outer_;
  double count_ = 0;
  at::CallbackHandle handle_;
};

thread_local FlopCount* FlopCount::current = nullptr;

RowSpec row_of(const at::Tensor& tensor) { return {tensor.sizes().slice(1).vec(), tensor.scalar_type()}; }

// Sums the costs over all ranks, because all must cut the model at the same places. Ranks that divide a layer may have
// parts of different cost, for example if one of them has the bias.
void agree_on_costs(std::vector<BlockCost>& blocks, Communicator& ranks) {
  const at::Tensor costs = at::empty({std::ssize(blocks)}, at::kDouble);
  auto* const values = costs.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < blocks.size(); ++i) values[i] = blocks[i].cost;
  ranks.all_reduce(costs, Reduction::kSum).wait();
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].cost = values[i];
}

}  // namespace

MeasuredBlocks measure_blocks(Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic) {
  const at::NoGradGuard no_grad;
  const Computation computation(task, std::move(arithmetic), nullptr, nullptr);
  at::Tensor x = computation.inputs({.inputs = zero_inputs(task, mesh), .valid = 1, .global_rows = 1}).at(0);
  const Autocast autocast(x.device().type(), computation.autocast());
  model.eval();
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [name, parameter] : model.named_parameters()) sizes[name] = parameter.numel();
  MeasuredBlocks measured;
  for (const auto& block : as<BlockChain>(model)->blocks()) {
    const FlopCount operations;
    x = block.forward(x);
    BlockCost& cost = measured.costs.emplace_back(BlockCost{.name = block.name, .cost = operations.count()});
    for (const auto& name : block.parameters) cost.cost += static_cast<double>(sizes.at(name));
    measured.outputs.push_back(row_of(x));
  }
  for (const auto& prediction : computation.predictions({x})) measured.predictions.push_back(row_of(prediction));
  agree_on_costs(measured.costs, *mesh.control());
  return measured;
}

}  // namespace phalanx
