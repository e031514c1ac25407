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
#include "engine/strategies/servers/parameter_service.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh/mesh.h"
#include "models/embedding/served_rows.h"

namespace phalanx {

/// The rows of embeddings that a model has on parameter servers (ServedRows), as part of a run. They are on the servers
/// of section `roles`, or else on one server in every rank. Does nothing for a model without such rows.
class ServedEmbeddings {
 public:
  /// Connects the model to its servers. All arguments must outlive the object. Collective. Throws ConfigError for
  /// settings that cannot be combined with rows on servers.
  ServedEmbeddings(const ExperimentConfig& config, Model& model, const Mesh& mesh, const ExperimentContext& context);
  ~ServedEmbeddings();
  ServedEmbeddings(const ServedEmbeddings&) = delete;
  ServedEmbeddings& operator=(const ServedEmbeddings&) = delete;

  /// Adds the hooks by which every step pushes its gradients. `factor` returns the schedule's factor of a step.
  void attach(Engine& engine, std::function<double(std::int64_t step)> factor);

  /// Returns a loader of the same batches. If rows are prefetched (`prefetch`), it gathers the next batch when it
  /// returns one. The rows of the next batch are requested once the forward of the current batch has its rows.
  std::unique_ptr<Loader> with_lookahead(std::unique_ptr<Loader> loader);

  /// Returns a checkpoint part with all rows and the state of their update rules, taken when no rank has anything left
  /// to push. Rank r of n saves the rows of servers r, r + n, r + 2 n and so on. They can be restored on any number of
  /// ranks and servers. Saving is collective and clears the cache, so that a run that resumes from the checkpoint reads
  /// the same rows as this one. Returns nullopt if there are no rows.
  std::optional<CheckpointPart> part();

  /// Blocks until the servers have applied all updates that any rank has pushed. Collective.
  void settle();

  /// Writes all rows to a file, without the state of their update rules (ps::RowsFile). Rank 0 does this block by
  /// block. Collective. Throws DataError.
  void write_rows(const std::string& path);

  /// Returns metrics of this rank (rows read from the cache, pulled, pushed and evicted from the cache, their bytes,
  /// and the number of pulls by staleness) and the number of rows on each server. Counting starts when the run begins
  /// to use the current servers.
  Metrics metrics();

 private:
  void connect();
  void follow_servers();
  ps::SparseTable::Rows read_rows();  // of the servers that this rank reads; collective
  NamedTensors save();
  void load(const SavedRanks& saved);

  Mesh mesh_;
  ServedRows* rows_;
  std::optional<ParameterService> service_;
  std::optional<Batch> next_;  // of the training data, if rows are prefetched
};

}  // namespace phalanx
