// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/step/computation.h"
#include "engine/step/current_step.h"
#include "engine/step/pipeline_results.h"
#include "engine/step/row_spec.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/step.h"
#include "framework/partition/pipeline/schedule.h"
#include "models/activation_checkpointing.h"
#include "models/auxiliary_loss.h"
#include "models/block_chain.h"
#include "models/model.h"

namespace phalanx {

/// Forward and backward of a model whose blocks are partitioned into stages among the ranks of a pipeline (Huang et al.
/// 2019, GPipe, arXiv:1811.06965; Narayanan et al. 2021, arXiv:2104.04473). The batch is cut into micro-batches, which
/// are on different stages at the same time, in the order of a schedule.
///
/// Bytes on the wire: each micro-batch's activations once over each boundary between stages on different ranks, and as
/// many bytes of gradients; in an evaluation also the predictions of the last stage, once to all ranks of the pipeline.
/// Messages have distinct tags: a rank may receive them in any order, and all sends are in flight while it computes. An
/// activation is kept only from its forward to its backward.
///
/// In training, results stay on one rank with the last stage; the results of other ranks have no outputs, no loss and
/// weight 0. Therefore no rank waits for later stages to finish. If its update does not wait either, it continues with
/// the next step ("bypassing optimizer synchronizations", Qi et al. 2023, arXiv:2401.10241, section 4).
///
/// A batch has as many micro-batches as the schedule, nearly equal. If it has fewer rows, some are one row of padding,
/// which does not count and does not change buffers. If a schedule separates the gradients of inputs from the gradients
/// of parameters, layers that can defer the latter do so (DeferGradients); other layers compute both at once.
class PipelineStep final : public Step {
 public:
  struct Setup {
    Model& model;  // a BlockChain that contains the blocks of this rank's stages
    const Task& task;
    pipeline::Schedule schedule;
    std::vector<std::size_t> begins;  // first block of each stage, followed by the number of blocks
    std::vector<RowSpec> inputs;      // of each stage; the first entry is not used
    std::vector<RowSpec> predictions;
    CommunicatorPtr pipe, control;  // two groups of the same ranks (Mesh), in the order of the schedule
    double factor = 1;              // see PlainStep
    Arithmetic arithmetic{};
    std::shared_ptr<const CurrentStep> current{};  // as for PlainStep
    bool communicates = false;                     // within stages, with ranks of other axes
    CheckpointedSegments segments{};               // of each stage (ActivationCheckpointing)
  };

  /// Throws ConfigError for a schedule with more messages than there are tags.
  explicit PipelineStep(Setup setup);

  /// Both functions are collective over the pipeline. Parameters that several stages share have different gradients on
  /// their ranks (SharedParameters).
  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

  /// Returns the largest number of micro-batches whose activations this rank has held at the same time, over all of its
  /// stages.
  std::size_t max_live() const { return max_live_; }

  /// Returns the fraction of the steps' time in which this rank did not compute.
  double idle() const { return seconds_ > 0 ? 1 - busy_ / seconds_ : 0; }

 private:
  class Pass;

  void barrier();
  at::Tensor run_blocks(std::size_t stage, at::Tensor x, bool training) const;

  Setup setup_;
  const std::vector<Block>& blocks_;
  AuxiliaryLoss* auxiliary_loss_;  // null: the model adds nothing to the loss
  Computation computation_;
  std::vector<at::Tensor> buffers_;
  PipelineResults::Setup results_;
  std::vector<int> ranks_;  // rank that computes a micro-batch on a stage, by stage, then by micro-batch
  std::size_t max_live_ = 0;
  double busy_ = 0, seconds_ = 0;
};

}  // namespace phalanx
