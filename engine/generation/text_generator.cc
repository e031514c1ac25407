// SPDX-License-Identifier: Apache-2.0
#include "engine/generation/text_generator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>

#include "framework/base/error.h"
#include "models/key_value_cache.h"

namespace phalanx {
namespace {

// Makes the model use a cache during its lifetime.
class KvCacheScope {
 public:
  KvCacheScope(IncrementalDecoding& model, std::int64_t context) : model_(model), cache_(context) {
    model_.use_kv_cache(&cache_);
  }
  ~KvCacheScope() { model_.use_kv_cache(nullptr); }
  KvCacheScope(const KvCacheScope&) = delete;
  KvCacheScope& operator=(const KvCacheScope&) = delete;

 private:
  IncrementalDecoding& model_;
  KeyValueCache cache_;
};

}  // namespace

TextGenerator::TextGenerator(Model& model, const Options& options)
    : model_(model), options_(options), sampler_(options.sampling) {
  if (!options.cache) return;
  decoding_ = as<IncrementalDecoding>(model);
  if (decoding_ == nullptr) {
    throw ConfigError("cache: this model keeps no keys and values, as these do: " +
                      models_with(&ModelTraits::incremental_decoding) + "; generate without a cache");
  }
}

void TextGenerator::run(std::vector<std::int64_t> text, std::int64_t count,
                        const std::function<bool(std::int64_t token)>& next) {
  if (text.empty()) throw std::invalid_argument("a text to continue must have at least one token");
  const at::NoGradGuard no_grad;
  model_.eval();
  const auto context = static_cast<std::size_t>(options_.context), kept = std::max<std::size_t>(1, context / 2);
  std::size_t begin = text.size() > context ? text.size() - context : 0, seen = begin;
  std::optional<KvCacheScope> cache;
  for (; count > 0; --count) {
    if (text.size() - begin > context) {
      begin = text.size() - kept;
      cache.reset();
    }
    if (options_.cache && !cache) {
      cache.emplace(*decoding_, options_.context);
      seen = begin;
    }
    const auto from = options_.cache ? seen : begin;
    const auto tokens = std::span(text).subspan(from);
    const at::Tensor input = at::tensor(at::ArrayRef<std::int64_t>(tokens.data(), tokens.size()), at::kLong);
    const at::Tensor scores = model_.forward(input.unsqueeze(0));
    seen = text.size();
    text.push_back(sampler_.draw(scores.select(0, 0).select(0, -1)));
    if (!next(text.back())) return;
  }
}

}  // namespace phalanx
