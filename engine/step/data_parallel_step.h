// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/thread_pool.h>

#include <functional>
#include <memory>
#include <vector>

#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Data parallelism inside one process: a batch is scattered to replicas of the model, each in a thread of its own, and
/// their outputs are gathered, their gradients added in the order of the replicas. Replicas have the first one's
/// parameters in common, not copies of them, and gradients of their own. Buffers (running statistics) are copied from
/// the first replica before each step, and what the others make of theirs is forgotten: as torch.nn.DataParallel.
///
/// Each replica computes with its share of the constructing thread's threads, and that thread, which is to run the
/// step, with no more than it until this is destroyed. Who watches sees each stage once, after all replicas; the first
/// one's step may have a watch of its own.
class DataParallelStep final : public Step {
 public:
  /// A model beside the first: `step` runs it.
  struct Replica {
    std::shared_ptr<Model> model;
    std::unique_ptr<Step> step;
  };

  /// `first` runs `model`, whose parameters are `parameters`; all three must outlive this. The others' parameters are
  /// moved: `memory` allocates their gradients, in buckets like those of `parameters`.
  DataParallelStep(Step& first, Model& model, const FlatParameters& parameters, std::vector<Replica> others,
                   Communicator& memory, std::int64_t bucket_bytes);

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

  Step& first_;
  Model& model_;
  const FlatParameters& parameters_;
  std::vector<Replica> others_;
  std::vector<FlatParameters> other_parameters_;
  ThreadShare share_;
  c10::ThreadPool threads_;  // one for each of the others
};

}  // namespace phalanx
