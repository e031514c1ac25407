// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/thread_pool.h>

#include <functional>
#include <memory>
#include <vector>

#include "framework/parallel/step.h"
#include "framework/partition/flat_parameters.h"
#include "models/model.h"

namespace phalanx {

/// Data parallelism inside one process: a batch is scattered to replicas of the model, each in its own thread. Their
/// outputs are gathered, and their gradients are added in the order of the replicas. Replicas share the parameters of
/// the first one and have their own gradients. Buffers (running statistics) are copied from the first replica before
/// each step, and changes to the copies are discarded, as in torch.nn.DataParallel.
///
/// The constructing thread's threads are divided among the replicas. That thread must also run the step, and is limited
/// to its share until this object is destroyed. A watcher sees each stage once, after all replicas. The first replica's
/// step may have its own watcher.
class DataParallelStep final : public Step {
 public:
  /// The first model, the step that runs it, and its parameters.
  struct FirstReplica {
    Step& step;
    Model& model;
    const FlatParameters& parameters;
  };
  /// Another model, and the step that runs it.
  struct Replica {
    std::shared_ptr<Model> model;
    std::unique_ptr<Step> step;
  };

  /// Everything that `first` refers to must outlive this object. The parameters of the others are replaced by views of
  /// the first one's. `memory` allocates their gradients, in buckets of `bucket_bytes` and of `parts` like the first
  /// one's.
  DataParallelStep(const FirstReplica& first, std::vector<Replica> others, Communicator& memory,
                   std::int64_t bucket_bytes, std::int64_t parts);

  /// Returns the parameters of each replica but the first.
  const std::vector<FlatParameters>& other_parameters() const { return other_parameters_; }

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  class ThreadShare {
   public:
    explicit ThreadShare(int among);
    ~ThreadShare();
    ThreadShare(const ThreadShare&) = delete;
    ThreadShare& operator=(const ThreadShare&) = delete;

   private:
    int before_;
  };
  using OneStep = std::function<Result(Step&, const Batch&)>;

  Result scatter(const Batch& batch, const OneStep& one);
  void prepare();
  void copy_buffers();
  void add_gradients();

  FirstReplica first_;
  std::vector<Replica> others_;
  std::vector<FlatParameters> other_parameters_;
  ThreadShare share_;
  c10::ThreadPool threads_;  // one for each replica except the first
};

}  // namespace phalanx
