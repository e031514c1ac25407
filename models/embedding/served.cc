// SPDX-License-Identifier: Apache-2.0
// Embeddings on parameter servers, as in Persia (Lian et al. 2021, Persia: An Open, Hybrid System Scaling Deep
// Learning-based Recommenders up to 100 Trillion Parameters). Rows are read and updated asynchronously within a bound
// of staleness, while the strategy keeps the dense parameters synchronous.
//
// In a step with u distinct keys on a rank, the pull transfers 8 u bytes of keys and 4 dim u bytes of rows, and the
// push as many, spread among the servers. Cache hits reduce this.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/ps/sparse/rows_file.h"
#include "framework/ps/sparse/sparse_cache.h"
#include "framework/ps/sparse/sparse_table.h"
#include "models/embedding/embedding.h"
#include "models/embedding/served_rows.h"
#include "models/model.h"

namespace phalanx {
namespace {

struct ServedConfig {
  std::string partition = "hash";
  std::int64_t capacity = 1 << 20;
  std::string rule = "adagrad";
  double lr = 0.02;
  std::int64_t staleness = 4;
  std::int64_t cache_rows = 1 << 16;
  std::int64_t cache_staleness = 0;
  bool prefetch = false;
  double scale = 0.01;
  std::int64_t seed = 0;

  template <class V>
  void visit(V& v) {
    v("partition", partition, "how keys are assigned to servers; hash: evenly, range: in order",
      config::one_of({"hash", "range"}));
    v("capacity", capacity,
      "rows that all servers hold together; if there are more, those not used recently are forgotten",
      config::at_least(1));
    v("rule", rule, "update rule of rows; rowwise_adagrad: adagrad with one sum for each row",
      config::one_of({"sgd", "adagrad", "rowwise_adagrad", "adam"}));
    v("lr", lr, "learning rate of rows, multiplied by the schedule", config::above(0));
    v("staleness", staleness, "steps that a rank may be ahead of the slowest when it reads rows; -1: any number",
      config::at_least(ps::kAsynchronous));
    v("cache_rows", cache_rows, "rows that each rank keeps in its cache", config::at_least(1));
    v("cache_staleness", cache_staleness, "steps for which a rank keeps rows, and their updates; 0: it keeps none",
      config::at_least(0));
    v("prefetch", prefetch, "request the next step's rows while a step computes; needs cache_staleness: 1 or more");
    v("scale", scale, "standard deviation of initial values", config::at_least(0));
    v("seed", seed, "random seed of initial values");
  }
};

class ServedEmbedding final : public Embedding, public ServedRows {
 public:
  ServedEmbedding(ServedConfig config, const EmbeddingSpec& spec) : config_(std::move(config)), spec_(spec) {
    if (!config_.prefetch || config_.cache_staleness > 0) return;
    throw ConfigError(
        "model.embeddings.prefetch: rows that are requested in advance lack the gradients of the step before; allow "
        "that with cache_staleness: 1 or more, or leave prefetch out");
  }

  at::Tensor forward(const at::Tensor& ids) override {
    const auto [keys, places] =
        at::_unique(keys_of(ids.to(at::kCPU), spec_).flatten(), /*sorted=*/true, /*return_inverse=*/true);
    at::Tensor rows = at::empty({keys.size(0), spec_.dim});
    if (is_training() && at::GradMode::is_enabled()) {
      if (!cache_) throw absent();
      cache_->pull(keys, rows);
      rows.requires_grad_(true);
      used_.push_back({keys, rows});
    } else if (file_) {
      file_->read(keys, rows);
    } else {
      if (!table_) throw absent();
      table_->pull(keys, rows, {.read_only = true}).wait();
    }
    return rows.index_select(0, places.flatten()).view({ids.size(0), spec_.features, spec_.dim}).to(ids.device());
  }

  void connect(ps::Client& client, std::int64_t clients) override {
    ps::TableSpec spec = table_spec();
    spec.clients = clients;
    table_.emplace(client, spec);
    cache_.emplace(*table_,
                   ps::SparseCacheOptions{.capacity = config_.cache_rows, .staleness = config_.cache_staleness});
  }

  void disconnect() override {
    cache_.reset();
    table_.reset();
    used_.clear();
  }

  void read_from(const std::string& path) override { file_.emplace(path, table_spec()); }

  void push(double share, double factor) override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> keys, updates;
    for (const auto& [used, rows] : used_) {
      keys.push_back(used);
      updates.push_back(rows.grad().defined() ? rows.grad() * share : at::zeros_like(rows));
    }
    used_.clear();
    cache_->push(at::concat(keys), at::concat(updates), {.rule = 0, .scale = config_.lr * factor, .tick = true});
  }

  void flush() override { cache_->flush(); }
  void forget_cached() override { cache_->clear(); }
  bool prefetches() const override { return config_.prefetch; }

  void prefetch(const at::Tensor& ids) override {
    cache_->prefetch(std::get<0>(at::_unique(keys_of(ids.to(at::kCPU), spec_).flatten())));
  }

  ps::SparseTable& table() override { return *table_; }
  const ps::CachedSparseTable::Counts& counts() const override { return cache_->counts(); }
  const std::vector<std::int64_t>& staleness_seen() const override { return table_->staleness_seen(); }

 private:
  struct Used {
    at::Tensor keys, rows;  // [u], [u, dim] with the gradient
  };

  ps::TableSpec table_spec() const {
    const std::string rule =
        config_.rule == "rowwise_adagrad" ? "{name: adagrad, rowwise: true}" : "{name: " + config_.rule + "}";
    return {.name = "embeddings",
            .rules = {rule},
            .staleness = config_.staleness,
            .dim = spec_.dim,
            .sparse = {.partition = config_.partition,
                       .keys = spec_.features * spec_.keys,
                       .capacity = config_.capacity,
                       .initial = "normal",
                       .scale = config_.scale,
                       .seed = config_.seed}};
  }

  static ConfigError absent() {
    return ConfigError(
        "model.embeddings: servers: this program has no servers that hold the rows; train such a model with "
        "tools:train, and evaluate it with tools:eval after a run. Other programs need model.embeddings: local");
  }

  ServedConfig config_;
  EmbeddingSpec spec_;
  std::optional<ps::RowsFile> file_;  // replaces the table in evaluation from a file
  std::optional<ps::SparseTable> table_;
  std::optional<ps::CachedSparseTable> cache_;
  std::vector<Used> used_;  // one element per forward since the last push
};

const bool served_registered = Embeddings::global().add<ServedConfig>(
    "servers", "rows on parameter servers, of a key space of any size", EmbeddingTraits{.parameter_servers = true},
    [](const ServedConfig& config, const EmbeddingSpec& spec) {
      return std::make_shared<ServedEmbedding>(config, spec);
    });

}  // namespace

ServedRows* served_rows_of(Model& model) {
  auto* const network = dynamic_cast<torch::nn::Module*>(&model);
  if (network == nullptr) return nullptr;
  for (const auto& module : network->modules(/*include_self=*/false)) {
    if (auto* rows = dynamic_cast<ServedRows*>(module.get())) return rows;
  }
  return nullptr;
}

}  // namespace phalanx
