// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/checkpoint/carried_state.h"
#include "engine/engine.h"
#include "engine/hooks/checkpointed_run.h"

namespace phalanx {

/// Knows the last complete step of a rank that goes on from its own state when others are lost, and keeps what the next
/// one changes before it changes the parameters, so that this step can be abandoned at any point.
class StepProgress {
 public:
  /// `run` must outlive this object.
  explicit StepProgress(const CheckpointedRun& run) : run_(run) {}
  StepProgress(const StepProgress&) = delete;
  StepProgress& operator=(const StepProgress&) = delete;

  /// Adds the hooks that follow the progress. Must be called before anything else adds hooks. The engine's training
  /// must not outlive this object.
  void follow(Engine& engine);

  /// The position after the last complete step, and the hooks of this step that the rank has completed.
  const Position& position() const { return position_; }
  StepStage stage() const { return stage_; }

  /// Set the two where a run begins or continues.
  void set_position(const Position& position) { position_ = position; }
  void set_stage(StepStage stage) { stage_ = stage; }

  /// Restores what a step has changed that has begun and has not changed the parameters.
  void abandon_step();

 private:
  void begin_step(const State& state);

  const CheckpointedRun& run_;
  Position position_{};
  StepStage stage_ = StepStage::kDone;
  bool in_step_ = false;  // the next step has begun, and has not changed the parameters yet
  std::vector<at::Tensor> buffers_before_step_{};
  at::Tensor random_before_step_{};
};

}  // namespace phalanx
