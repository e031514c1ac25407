// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `checkpoint` of a config: when a run saves checkpoints, and where it resumes.
struct CheckpointConfig {
  std::int64_t every_steps = 0;
  std::int64_t every_epochs = 0;
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 0;
  std::string best_by;
  std::string best_is = "auto";
  std::string resume = "none";
  bool final_weights = true;
  double max_wait = 10;
  double retry = 10;
  double deadline = 600;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "write a checkpoint after every n-th step; 0: not by steps", config::at_least(0));
    v("every_epochs", every_epochs, "write a checkpoint after every n-th epoch; 0: not by epochs", config::at_least(0));
    v("keep_last", keep_last, "newest checkpoints to keep", config::at_least(1));
    v("keep_best", keep_best, "best checkpoints to keep too; above 0, a checkpoint is written after every test",
      config::at_least(0));
    v("best_by", best_by, "metric that decides which checkpoint is best; empty: the task's own");
    v("best_is", best_is, "which value of this metric is best; auto: as the task defines it for its own metric",
      config::one_of({"auto", "highest", "lowest"}));
    v("resume", resume, "where to resume: none, auto (newest checkpoint of the run folder) or a checkpoint's path");
    v("final_weights", final_weights,
      "write weights.safetensors to the run folder at the end, and rows of embeddings on servers next to it");
    v("max_wait", max_wait,
      "seconds that a step waits for the checkpoint before; then training goes on, and the newest one waits in memory",
      config::at_least(0));
    v("retry", retry,
      "seconds at the end for which files that the disk refuses are tried again; while training goes on, they always "
      "are; 0: never",
      config::at_least(0));
    v("deadline", deadline,
      "seconds after which a rank warns that its files are still being written, and writes them again; 0: never",
      config::at_least(0));
  }
};

}  // namespace phalanx
