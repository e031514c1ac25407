#include "engine/experiment/served_embeddings.h"

#include <cstddef>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

void check_combination(const ExperimentConfig& config) {
  const auto refuse = [](bool wrong, const std::string& key, const std::string& why) {
    if (wrong) throw ConfigError(key + ": " + why + "; change it, or use model.embeddings: local");
  };
  const auto& train = config.train;
  const auto& checkpoint = config.checkpoint;
  refuse(!config.strategy.traits().reduces_gradients, "strategy",
         config.strategy.selected() + " does not reduce gradients in every step, as embeddings on servers need it");
  refuse(config.determinism != "run", "determinism", "updates of embeddings on servers come in any order");
  refuse(train.data_parallel > 1, "train.data_parallel", "replicas in threads cannot use embeddings on servers");
  refuse(train.precision == "fp16", "train.precision", "gradients of embeddings on servers are not scaled");
  refuse(train.clip_norm > 0, "train.clip_norm", "gradients of embeddings on servers are not clipped");
  refuse(train.clip_value > 0, "train.clip_value", "gradients of embeddings on servers are not clipped");
  refuse(train.ema_decay > 0, "train.ema_decay", "embeddings on servers have no moving average");
  const std::string no_checkpoint = "checkpoints do not hold the embeddings on servers";
  refuse(checkpoint.resume != "none", "checkpoint.resume", no_checkpoint);
  refuse(checkpoint.every_steps > 0, "checkpoint.every_steps", no_checkpoint);
  refuse(checkpoint.every_epochs > 0, "checkpoint.every_epochs", no_checkpoint);
  refuse(checkpoint.keep_best > 0, "checkpoint.keep_best", no_checkpoint);
}

}  // namespace

ServedEmbeddings::ServedEmbeddings(const ExperimentConfig& config, Model& model, const Mesh& mesh,
                                   const ExperimentContext& context)
    : mesh_(mesh), rows_(served_rows_of(model)) {
  if (rows_ == nullptr) return;
  check_combination(config);
  service_.emplace(SyncContext{.mesh = mesh,
                               .group = mesh.control()->split(0, mesh.control()->rank()),
                               .servers = context.servers,
                               .timeout = Seconds(config.framework.timeout)});
  rows_->connect(service_->client(), service_->group().size());
}

ServedEmbeddings::~ServedEmbeddings() {
  if (rows_ != nullptr) rows_->disconnect();
}

void ServedEmbeddings::attach(Engine& engine, std::function<double(std::int64_t step)> factor) {
  if (rows_ == nullptr) return;
  // Ranks have the gradient of their part of the batch times their number.
  const double share = 1.0 / static_cast<double>(service_->group().size());
  engine.on(Event::kBackward,
            [this, share, factor = std::move(factor)](State& state) { rows_->push(share, factor(state.step)); });
  engine.on(Event::kEnd, [this](State&) { settle(); });
}

void ServedEmbeddings::settle() {
  if (rows_ == nullptr) return;
  rows_->flush();
  service_->group().barrier().wait();
}

Figures ServedEmbeddings::figures() const {
  if (rows_ == nullptr) return {};
  const auto& counts = rows_->counts();
  Figures figures{{"embedding_cache_hits", static_cast<double>(counts.hits)},
                  {"embedding_rows_pulled", static_cast<double>(counts.pulled)},
                  {"embedding_rows_pushed", static_cast<double>(counts.pushed)},
                  {"embedding_cache_evictions", static_cast<double>(counts.evicted)}};
  const auto& seen = rows_->staleness_seen();
  for (std::size_t behind = 0; behind < seen.size(); ++behind) {
    if (seen[behind] == 0) continue;
    figures.emplace_back("embedding_pulls_at_staleness_" + std::to_string(behind), static_cast<double>(seen[behind]));
  }
  return figures;
}

}  // namespace phalanx
