#pragma once

#include <functional>
#include <optional>

#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/sync/parameter_service.h"
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

  /// What all ranks have pushed is applied, and may be read. Collective.
  void settle();

  /// Of this rank: rows read from the cache, pulled, pushed and evicted from the cache, and how many pulls saw which
  /// staleness.
  Figures figures() const;

 private:
  Mesh mesh_;
  ServedRows* rows_;
  std::optional<ParameterService> service_;
};

}  // namespace phalanx
