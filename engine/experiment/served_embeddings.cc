// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/served_embeddings.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/servers/staleness_metrics.h"
#include "framework/base/error.h"
#include "framework/ps/sparse/rows_file.h"

namespace phalanx {
namespace {

void check_combination(const ExperimentConfig& config) {
  const auto refuse = [](bool wrong, const std::string& key, const std::string& why) {
    if (wrong) throw ConfigError(key + ": " + why + "; change it, or use model.embeddings: local");
  };
  const auto& train = config.train;
  refuse(!config.strategy.traits().reduces_gradients, "strategy",
         config.strategy.selected() + " does not reduce gradients in every step, which embeddings on servers need");
  refuse(config.determinism != "run", "determinism", "updates of embeddings on servers come in any order");
  refuse(train.data_parallel > 1, "train.data_parallel", "replicas in threads cannot use embeddings on servers");
  refuse(train.precision == "fp16", "train.precision", "gradients of embeddings on servers are not scaled");
  refuse(train.clip_norm > 0, "train.clip_norm", "gradients of embeddings on servers are not clipped");
  refuse(train.clip_value > 0, "train.clip_value", "gradients of embeddings on servers are not clipped");
  refuse(train.ema_decay > 0, "train.ema_decay", "embeddings on servers have no moving average");
}

constexpr std::size_t kIds = 1;  // position of the ids in inputs of recommenders (models/embedding/embedding.h)

// A loader that gathers the next batch when it returns one.
class LookaheadLoader final : public Loader {
 public:
  LookaheadLoader(std::unique_ptr<Loader> loader, std::optional<Batch>& next)
      : loader_(std::move(loader)), next_(next) {}

  std::int64_t batches() const override { return loader_->batches(); }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    loader_->start_epoch(epoch, cursor);
    next_.reset();
    begins_ = true;
  }

  bool next(Batch& batch) override {
    if (begins_) gather();
    begins_ = false;
    if (!next_) return false;
    std::swap(batch, *next_);
    gather();
    return true;
  }

 private:
  void gather() {
    if (!next_) next_.emplace();
    if (!loader_->next(*next_)) next_.reset();
  }

  std::unique_ptr<Loader> loader_;
  std::optional<Batch>& next_;
  bool begins_ = true;
};

}  // namespace

ServedEmbeddings::ServedEmbeddings(const ExperimentConfig& config, Model& model, const Mesh& mesh,
                                   const ExperimentContext& context)
    : mesh_(mesh), rows_(served_rows_of(model)) {
  if (rows_ == nullptr) return;
  check_combination(config);
  service_.emplace(StrategyContext{.mesh = mesh,
                                   .group = mesh.control()->split(0, mesh.control()->rank()),
                                   .servers = context.servers,
                                   .timeout = Seconds(config.framework.timeout)});
  connect();
  service_->on_change_of_servers([this] { follow_servers(); });
}

void ServedEmbeddings::connect() { rows_->connect(service_->client(), service_->group().size()); }

void ServedEmbeddings::follow_servers() {
  const auto rows = read_rows();
  rows_->disconnect();
  auto former = service_->follow_servers();
  connect();
  rows_->table().write_rows(rows);
  // Collective, so no rank reads rows before all are written.
  service_->leave(std::move(former));
}

ServedEmbeddings::~ServedEmbeddings() {
  if (rows_ != nullptr) rows_->disconnect();
}

void ServedEmbeddings::attach(Engine& engine, std::function<double(std::int64_t step)> factor) {
  if (rows_ == nullptr) return;
  // The gradient of a rank is the gradient of its part of the batch times the number of ranks.
  const double share = 1.0 / static_cast<double>(service_->group().size());
  engine.on(Event::kForwardCriterion, HookPhase::kSynchronize, [this](State&) {
    if (next_) rows_->prefetch(next_->inputs.at(kIds));
  });
  engine.on(Event::kBackward, HookPhase::kSynchronize,
            [this, share, factor = std::move(factor)](State& state) { rows_->push(share, factor(state.step)); });
  engine.on(Event::kEnd, HookPhase::kSynchronize, [this](State&) { settle(); });
}

void ServedEmbeddings::settle() {
  if (rows_ == nullptr) return;
  rows_->flush();
  service_->group().barrier().wait();
}

std::unique_ptr<Loader> ServedEmbeddings::with_lookahead(std::unique_ptr<Loader> loader) {
  if (rows_ == nullptr || !rows_->prefetches()) return loader;
  return std::make_unique<LookaheadLoader>(std::move(loader), next_);
}

std::optional<CheckpointPart> ServedEmbeddings::part() {
  if (rows_ == nullptr) return std::nullopt;
  return CheckpointPart{.name = "embeddings",
                        .save = [this] { return save(); },
                        .load = [this](const SavedRanks& saved) { load(saved); }};
}

ps::SparseTable::Rows ServedEmbeddings::read_rows() {
  auto& group = service_->group();
  rows_->forget_cached();
  group.barrier().wait();  // everything has been pushed
  std::vector<at::Tensor> keys{at::empty({0}, at::kLong)};
  std::vector<at::Tensor> numbers{at::empty({0, rows_->table().numbers_of_row()})};
  for (auto server = group.rank(); server < static_cast<int>(service_->client().servers()); server += group.size()) {
    auto rows = rows_->table().read_rows(static_cast<std::size_t>(server));
    keys.push_back(std::move(rows.keys));
    numbers.push_back(std::move(rows.numbers));
  }
  group.barrier().wait();  // no rank pushes while others read
  return {.keys = at::concat(keys), .numbers = at::concat(numbers)};
}

NamedTensors ServedEmbeddings::save() {
  auto rows = read_rows();
  return {{"keys", std::move(rows.keys)}, {"rows", std::move(rows.numbers)}};
}

void ServedEmbeddings::load(const SavedRanks& saved) {
  auto& table = rows_->table();
  for (int rank = service_->group().rank(); rank < saved.ranks; rank += service_->group().size()) {
    const NamedTensors all = saved.of(rank);
    const std::map<std::string, at::Tensor> by_name(all.begin(), all.end());
    if (by_name.empty()) {
      throw DataError(
          "the checkpoint has no embeddings on servers: resume with the model.embeddings that it was saved with");
    }
    const at::Tensor &keys = by_name.at("keys"), &rows = by_name.at("rows");
    if (rows.size(1) != table.numbers_of_row()) {
      throw DataError("the checkpoint has embeddings of " + std::to_string(rows.size(1)) +
                      " numbers per row, including the state of their rule; here they have " +
                      std::to_string(table.numbers_of_row()) +
                      ": resume with the model.embeddings that it was saved with");
    }
    table.write_rows({.keys = keys, .numbers = rows});
  }
  service_->group().barrier().wait();  // no rank reads rows before all are written
}

// The servers hold exactly the rows of training, because rows that only evaluation reads are not created. No other rank
// uses them now.
void ServedEmbeddings::write_rows(const std::string& path) {
  if (rows_ == nullptr) return;
  settle();
  if (service_->group().rank() == 0) ps::write_rows_file(path, rows_->table());
  service_->group().barrier().wait();  // servers must not end before
}

Metrics ServedEmbeddings::metrics() {
  if (rows_ == nullptr) return {};
  const auto& counts = rows_->counts();
  const auto& bytes = rows_->table().bytes();
  Metrics metrics{{"embedding_cache_hits", static_cast<double>(counts.hits)},
                  {"embedding_rows_pulled", static_cast<double>(counts.pulled)},
                  {"embedding_rows_pushed", static_cast<double>(counts.pushed)},
                  {"embedding_cache_evictions", static_cast<double>(counts.evicted)},
                  {"embedding_bytes_pulled", static_cast<double>(bytes.pulled)},
                  {"embedding_bytes_pushed", static_cast<double>(bytes.pushed)}};
  for (auto& metric : staleness_metrics("embedding_", rows_->staleness_seen())) metrics.push_back(std::move(metric));
  for (auto& metric : service_->metrics_of_servers("embedding_")) metrics.push_back(std::move(metric));
  if (const auto lost = service_->lost_updates(); lost > 0) {
    metrics.emplace_back("embedding_lost_updates", static_cast<double>(lost));
  }
  const auto of_servers = rows_->table().rows_of_servers();
  for (std::size_t server = 0; server < of_servers.size(); ++server) {
    metrics.emplace_back("embedding_rows_on_server_" + std::to_string(server), static_cast<double>(of_servers[server]));
  }
  return metrics;
}

}  // namespace phalanx
