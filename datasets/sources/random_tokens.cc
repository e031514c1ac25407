// SPDX-License-Identifier: Apache-2.0
// Sequences of tokens. With a given probability a token is determined by the one before it, otherwise it is random.
// This gives a partly learnable language of any size without files.
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kRules = 2;  // stream of the seed; 0 and 1 are the splits

struct RandomTokensConfig {
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 2'000;
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;
  double order = 0.5;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "samples to train on", config::at_least(1));
    v("test_samples", test_samples, "samples to test on", config::at_least(1));
    v("vocabulary", vocabulary, "tokens lie in [0, vocabulary)", config::between(2, 1L << 32));
    v("context", context, "tokens per sample", config::between(1, 1 << 20));
    v("order", order, "probability that a token follows from the one before it", config::between(0, 1));
    v("seed", seed, "random seed of the samples");
    v("root", root, "unused, since there are no files");
  }
};

class RandomTokens final : public Dataset {
 public:
  // `split` separates the training samples from the test samples.
  RandomTokens(const RandomTokensConfig& config, std::int64_t samples, std::uint64_t split)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, config_.context}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, config_.context}, at::kLong).data_ptr<std::int64_t>();
    const auto vocabulary = static_cast<std::uint64_t>(config_.vocabulary);
    const auto rules = mix(static_cast<std::uint64_t>(config_.seed), kRules);
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
      auto token = random.below(vocabulary);
      for (std::int64_t i = 0; i < config_.context; ++i) {
        *input++ = static_cast<std::int64_t>(token);
        const bool follows = random.between(0, 1) < static_cast<float>(config_.order);
        token = follows ? RandomStream(mix(rules, token)).below(vocabulary) : random.below(vocabulary);
        *target++ = static_cast<std::int64_t>(token);
      }
    }
  }

 private:
  RandomTokensConfig config_;
  SampleSpec spec_ = language_samples(config_.context, config_.vocabulary);
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_random_tokens(const RandomTokensConfig& config) {
  return {.train = std::make_shared<RandomTokens>(config, config.train_samples, 0),
          .test = std::make_shared<RandomTokens>(config, config.test_samples, 1)};
}

const bool random_tokens_registered = Datasets::global().add<RandomTokensConfig>(
    "random_tokens", "generated sequences of tokens, for measuring speed", make_random_tokens);

}  // namespace
}  // namespace phalanx
