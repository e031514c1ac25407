// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/step/computation.h"
#include "engine/step/pipeline_results.h"
#include "engine/step/row_spec.h"
#include "engine/step/shared_parameters.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/pipeline/schedule.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Forward and backward of a model whose blocks are divided into stages among the ranks of a pipeline (Huang et al.
/// 2019, GPipe, arXiv:1811.06965; Narayanan et al. 2021, arXiv:2104.04473): the batch is cut into micro-batches, and
/// while one of them is on a stage others are on others, in the order of a schedule.
///
/// Bytes on the wire: each micro-batch's activations once over each boundary of stages that lie on different ranks, and
/// as many of gradients; in an evaluation also what the last stage gives (the predictions), once to all ranks of the
/// pipeline. Messages are told apart by tags: a rank may receive them in any order, and all sends are in flight while
/// it computes. An activation is kept from its forward to its backward alone.
///
/// In training, results stay on one rank with the last stage; those of other ranks have no outputs, no loss and the
/// weight 0. So no rank waits for the later stages to end: where its update does not either, it goes on to the next
/// step ("bypassing optimizer synchronizations", Qi et al. 2023, arXiv:2401.10241, section 4).
///
/// A batch has as many micro-batches as the schedule, nearly equal; where it has fewer rows some are one row of
/// padding, which does not count and leaves buffers as they are. Where a schedule has the gradients of inputs apart
/// from those of parameters, layers that can put the latter off do (DeferGradients); the others compute both at once.
class PipelineStep final : public Step {
 public:
  struct Setup {
    Model& model;  // with the blocks of this rank's stages
    const Task& task;
    pipeline::Schedule schedule;
    std::vector<std::size_t> begins;  // first block of each stage; then the number of blocks
    std::vector<RowSpec> inputs;      // of each stage; that of the first is not looked at
    std::vector<RowSpec> predictions;
    CommunicatorPtr pipe, control;  // the same ranks (Mesh), in the order of the schedule's
    double factor = 1;              // as PlainStep
    Arithmetic arithmetic{};
    StepSeed seed{};
    bool communicates = false;  // inside of stages, with ranks of other axes
    std::int64_t segments = 0;  // of each stage that are checkpointed (Model::checkpoint_activations)
    SharedParameters shared{};
  };

  /// Throws ConfigError for a schedule with more messages than there are tags.
  explicit PipelineStep(Setup setup);

  /// Gradients of shared parameters are the sums over their ranks, wherever these are updated. Collective over the
  /// pipeline, as evaluate().
  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

  const SharedParameters& shared() const { return setup_.shared; }

  /// The most micro-batches whose activations a rank has had at once, on all of its stages together.
  std::size_t most_live() const { return most_live_; }

  /// The part of the steps' time in which this rank did not compute.
  double idle() const { return seconds_ > 0 ? 1 - busy_ / seconds_ : 0; }

 private:
  class Pass;

  void meet();
  at::Tensor run_blocks(std::size_t stage, at::Tensor x, bool training) const;

  Setup setup_;
  Computation computation_;
  std::vector<at::Tensor> buffers_;
  PipelineResults::Setup results_;
  std::vector<int> ranks_;  // that compute a micro-batch on a stage: by stage, then by micro-batch
  std::size_t most_live_ = 0;
  double busy_ = 0, seconds_ = 0;
};

}  // namespace phalanx
