// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "datasets/continued_loader.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "engine/build/replica.h"
#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/learning_rate.h"
#include "engine/experiment/preparation.h"
#include "engine/hooks/sample_shares.h"
#include "engine/hooks/served_embeddings.h"
#include "engine/hooks/watching/watching.h"
#include "engine/run_length.h"
#include "engine/task/task.h"

namespace phalanx {

/// The parts of a run that train, on one rank. The members are built in this order, and later ones refer to what
/// earlier ones point to, which does not move.
struct Trainer {
  std::unique_ptr<Watching> watching;
  Replica replica;
  std::unique_ptr<ServedEmbeddings> embeddings;
  std::unique_ptr<SampleShares> shares;
  Preparation preparation;               // of the batches of all loaders
  std::unique_ptr<Loader> loader;        // of the training split
  ContinuedLoader* continued = nullptr;  // a part of it
  RunLength length;
  std::unique_ptr<LearningRate> learning_rate;
  std::unique_ptr<Engine> engine;
};

/// Builds the trainer of this rank. `config` must have the task's defaults, and `splits` the held-out split. All
/// arguments must outlive the trainer. Collective. Throws ConfigError if the config does not fit the data or the ranks.
Trainer build_trainer(const ExperimentConfig& config, const Splits& splits, Task& task,
                      const ExperimentContext& context);

}  // namespace phalanx
