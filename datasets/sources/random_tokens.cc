// SPDX-License-Identifier: Apache-2.0
// Sequences of tokens. With a given probability a token is determined by the one before it, otherwise it is random.
// This gives a partly learnable language of any size without files.
#include <cstdint>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kRules = 2;  // stream of the seed; 0 and 1 are the splits

struct RandomTokensConfig : GeneratedConfig {
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;
  double order = 0.5;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("vocabulary", vocabulary, "tokens lie in [0, vocabulary)", config::between(2, 1L << 32));
    v("context", context, "tokens per sample", config::between(1, 1 << 20));
    v("order", order, "probability that a token follows from the one before it", config::between(0, 1));
    visit_seed(v);
  }
};

class RandomTokens final : public GeneratedDataset {
 public:
  RandomTokens(const RandomTokensConfig& config, Split split)
      : GeneratedDataset(language_samples(config.context, config.vocabulary), split), config_(config) {}

 private:
  void write(std::int64_t index, const Row& row) const override {
    const auto vocabulary = static_cast<std::uint64_t>(config_.vocabulary);
    const auto rules = mix(static_cast<std::uint64_t>(config_.seed), kRules);
    RandomStream random(seed_of(index));
    auto* input = row.input<std::int64_t>();
    auto* target = row.target<std::int64_t>();
    auto token = random.below(vocabulary);
    for (std::int64_t i = 0; i < config_.context; ++i) {
      *input++ = static_cast<std::int64_t>(token);
      const bool follows = random.between(0, 1) < static_cast<float>(config_.order);
      token = follows ? RandomStream(mix(rules, token)).below(vocabulary) : random.below(vocabulary);
      *target++ = static_cast<std::int64_t>(token);
    }
  }

  RandomTokensConfig config_;
};

const bool random_tokens_registered =
    add_dataset_without_files<RandomTokensConfig>("random_tokens", "generated sequences of tokens, for measuring speed",
                                                  generated_splits<RandomTokens, RandomTokensConfig>);

}  // namespace
}  // namespace phalanx
