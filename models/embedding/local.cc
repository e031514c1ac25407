// SPDX-License-Identifier: Apache-2.0
// Embeddings as parameters of the model: weight [rows, dim], of which each replica has all rows. If there are more keys
// than rows, keys share rows by hash (Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning).
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/base/config/visitor.h"
#include "framework/base/random.h"
#include "models/embedding/embedding.h"

namespace phalanx {
namespace {

struct LocalConfig {
  std::int64_t rows = 65536;
  double scale = 0.01;

  template <class V>
  void visit(V& v) {
    v("rows", rows, "largest number of rows; if there are more keys, they share rows", config::between(1, 1 << 28));
    v("scale", scale, "standard deviation of initial values", config::at_least(0));
  }
};

class LocalEmbedding final : public Embedding {
 public:
  LocalEmbedding(const LocalConfig& config, const EmbeddingSpec& spec)
      : spec_(spec), shared_(spec.keys > config.rows / spec.features) {
    const auto rows = shared_ ? config.rows : spec.features * spec.keys;
    weight_ = register_parameter("weight", at::empty({rows, spec.dim}).normal_(0, config.scale));
  }

  at::Tensor forward(const at::Tensor& ids) override {
    const at::Tensor keys = keys_of(ids, spec_);
    return at::embedding(weight_, shared_ ? rows_of(keys) : keys);
  }

 private:
  at::Tensor rows_of(const at::Tensor& keys) const {
    const at::Tensor rows = keys.to(at::kCPU).contiguous();
    const auto count = static_cast<std::uint64_t>(weight_.size(0));
    auto* values = rows.data_ptr<std::int64_t>();
    std::transform(values, values + rows.numel(), values, [count](std::int64_t key) {
      return static_cast<std::int64_t>(mix(0, static_cast<std::uint64_t>(key)) % count);
    });
    return rows.to(keys.device());
  }

  EmbeddingSpec spec_;
  bool shared_;  // keys share rows
  at::Tensor weight_;
};

const bool local_registered = Embeddings::global().add<LocalConfig>(
    "local", "parameters of the model", EmbeddingTraits{}, [](const LocalConfig& config, const EmbeddingSpec& spec) {
      return std::make_shared<LocalEmbedding>(config, spec);
    });

}  // namespace
}  // namespace phalanx
