// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "datasets/loader.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/sync/parameter_service.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh.h"
#include "models/embedding/served_rows.h"

namespace phalanx {

/// The rows of embeddings that a model has on parameter servers (ServedRows), as part of a run: on the servers of
/// `roles`, else on one in every rank. Of a model without such rows, nothing.
class ServedEmbeddings {
 public:
  /// Connects the model to its servers. All must outlive it. Collective. Throws ConfigError for what cannot be combined
  /// with rows on servers.
  ServedEmbeddings(const ExperimentConfig& config, Model& model, const Mesh& mesh, const ExperimentContext& context);
  ~ServedEmbeddings();
  ServedEmbeddings(const ServedEmbeddings&) = delete;
  ServedEmbeddings& operator=(const ServedEmbeddings&) = delete;

  /// Every step pushes its gradients. `factor`: the schedule's, of a step.
  void attach(Engine& engine, std::function<double(std::int64_t step)> factor);

  /// The same batches. Where rows are asked for ahead (`prefetch`), it has the next batch already when it gives one
  /// out, whose rows are asked for once the forward of the present one has its own.
  std::unique_ptr<Loader> ahead_of(std::unique_ptr<Loader> loader);

  /// All rows with what their rules remember, as they are when no rank has anything left to push: rank r of n saves
  /// those of servers r, r + n, r + 2 n and so on. They go on on any number of ranks and servers. Saving is collective,
  /// and forgets what is cached, so that a run that goes on from there reads what this one reads. Null: none.
  std::optional<CheckpointPart> part();

  /// Blocks until the servers have applied all updates that any rank has pushed. Collective.
  void settle();

  /// Writes all rows to a file, without what their rules remember (ps::RowsFile): rank 0 does, block by block.
  /// Collective. Throws DataError.
  void write_rows(const std::string& path);

  /// Returns figures of this rank (rows read from the cache, pulled, pushed and evicted from the cache, their bytes,
  /// and the number of pulls by staleness) and the rows that each server holds. All are counted since the run uses
  /// these servers.
  Figures figures();

 private:
  void connect();
  void follow_servers();
  ps::SparseTable::Rows read_rows();  // of the servers that this rank reads; collective
  NamedTensors save();
  void load(const SavedRanks& saved);

  Mesh mesh_;
  ServedRows* rows_;
  std::optional<ParameterService> service_;
  std::optional<Batch> next_;  // of the training data, where rows are asked for ahead
};

}  // namespace phalanx
