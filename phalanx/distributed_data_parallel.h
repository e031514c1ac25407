// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "phalanx/world.h"

namespace phalanx {

struct DistributedDataParallelOptions {
  /// The strategy by which the replicas stay equal, by its name in docs/strategies.md:
  ///
  ///   auto              all_reduce if the ranks share memory, and otherwise overlapped
  ///   overlapped        exchanges the gradients of a bucket during backward, as soon as it has all of them
  ///   all_reduce        exchanges all gradients at the end of backward
  ///   local_sgd, diloco, gossip, ...  average the parameters every few steps; call after_step() in every step
  ///   sharded           every rank updates its part of the parameters; needs FusedOptimizer
  ///
  /// Strategies whose servers update the parameters, and stage 3 of sharded, which needs the blocks of a Phalanx model,
  /// are refused.
  std::string strategy = "auto";

  /// Further keys of the strategy's section in a config, with values as they are written there:
  /// {{"every", "8"}, {"momentum", "average"}}.
  std::map<std::string, std::string> strategy_options{};

  /// The compression of the data that the strategy sends: none, fp16, int8, "{name: topk, fraction: 0.01}", ...
  /// (docs/strategies.md).
  std::string compression = "none";

  /// The size at which a bucket of parameters is closed; 0: chosen by the strategy and the place of the ranks.
  std::int64_t bucket_bytes = 0;

  /// If true, the ranks compare which parameters got gradients. The grad of a parameter that no rank used stays as it
  /// was, undefined after zero_grad(), so that optimizers skip it. If false, it becomes zeros. Costs 8 bytes per step,
  /// and 8 bytes for each parameter in steps in which a rank has an unused one. Parameters that only some ranks use are
  /// handled in either case.
  bool find_unused_parameters = false;

  /// If true, all ranks get the buffers (running statistics) of the lowest rank that computed, after each backward that
  /// exchanges gradients. At construction they always get the buffers of rank 0. The buffers change in place, so where
  /// autograd has saved one (batch norm does), run each backward before the next forward, or set this to false.
  bool broadcast_buffers = true;

  /// If true, ranks may have different numbers of batches, and call join() after their last one. Costs an all-reduce of
  /// 8 bytes for each rank in every backward that exchanges gradients.
  bool uneven_inputs = false;

  /// With `uneven_inputs`, gradients are divided by the number of ranks that still have batches. If true, they are
  /// always divided by the number of all ranks, as if the others had gradients of zero.
  bool divide_by_all_ranks = false;
};

class NoSync;

/// Averages the gradients of a module over all ranks, each of which computes them for its part of a batch. The training
/// loop stays in the program:
///
///     phalanx::DistributedDataParallel ddp(model, world);
///     torch::optim::SGD optimizer(model->parameters(), 0.1);
///     for (auto& batch : *loader) {
///       optimizer.zero_grad();
///       torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target).backward();
///       optimizer.step();
///     }
///
/// When backward() returns, the gradients have been exchanged. Backward must reach at least one parameter of the
/// module, on every rank, equally often. Parameters keep their addresses as tensors (an optimizer may be made before or
/// after this object), but their memory moves into a few long buckets, and their gradients become views of such
/// buckets. They may be zeroed or reset to undefined (zero_grad()) and replaced; the next backward moves them back into
/// the buckets. Higher derivatives (create_graph) do not pass through the exchange, and a hook or a function of
/// autograd must not run another backward that reaches the module's parameters.
///
/// Errors: backward() throws CommError if a rank is lost or late. Afterwards neither gradients nor this object can be
/// used.
///
/// Threads: this object is used by the thread that calls backward(), one at a time for the ranks of one world.
class DistributedDataParallel {
 public:
  using Options = DistributedDataParallelOptions;

  /// Gives all ranks the parameters and buffers of rank 0. All parameters that are trained must require gradients now.
  /// The module's parameters must be on one device, world.device(), and may have several dtypes. Collective, with the
  /// same options on all ranks. Throws ConfigError for options that do not fit.
  DistributedDataParallel(torch::nn::Module& module, World& world, const Options& options = {});
  template <class Module>
  DistributedDataParallel(const std::shared_ptr<Module>& module, World& world, const Options& options = {})
      : DistributedDataParallel(static_cast<torch::nn::Module&>(*module), world, options) {}
  template <class Module>
  DistributedDataParallel(const torch::nn::ModuleHolder<Module>& module, World& world, const Options& options = {})
      : DistributedDataParallel(module.ptr(), world, options) {}

  /// Removes the hooks. The parameters stay in their buckets and can be used.
  ~DistributedDataParallel();
  DistributedDataParallel(DistributedDataParallel&&) noexcept;
  DistributedDataParallel& operator=(DistributedDataParallel&&) noexcept;

  /// While the result lives, backward only adds to the gradients of this rank. To accumulate over k batches, run the
  /// first k - 1 in such a scope; the last exchanges the sum. Gradients are means over ranks and sums over batches, so
  /// divide the loss by k. Throws ConfigError with stage 2 of strategy sharded, which keeps no gradients.
  [[nodiscard]] NoSync no_sync();

  /// Takes part in the steps of ranks that still have batches, until all ranks have called this. Then gives all ranks
  /// the parameters and buffers of a rank that took most steps, and returns that rank, whose optimizer state
  /// broadcast_optimizer_state() can copy. With a FusedOptimizer, a rank that waits here takes the steps too, so all
  /// state stays equal. Gradients that no_sync() has accumulated and no backward has exchanged are dropped. Needs
  /// `uneven_inputs`, and a strategy that exchanges gradients. Collective. Another epoch may follow.
  int join();

  /// Completes a step, after optimizer.step(). Strategies that average or shard parameters need it in every step, and a
  /// step without it makes the next backward() throw Error; for others it does nothing. FusedOptimizer::step() calls
  /// it. Collective for strategies that need it.
  void after_step();

  /// Makes the replicas equal after the last step, for strategies that average parameters. Nothing is exchanged
  /// afterwards. Collective.
  void finish();

  /// Returns the name of the strategy, with `auto` resolved.
  const std::string& strategy() const;

 private:
  friend class FusedOptimizer;
  friend class NoSync;
  class Replica;

  std::unique_ptr<Replica> replica_;
};

/// The scope of DistributedDataParallel::no_sync(). Scopes may be nested.
class [[nodiscard]] NoSync {
 public:
  ~NoSync();
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  friend class DistributedDataParallel;
  explicit NoSync(DistributedDataParallel::Replica& replica);

  DistributedDataParallel::Replica& replica_;
};

}  // namespace phalanx
