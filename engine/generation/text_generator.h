// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/generation/token_sampler.h"
#include "models/model.h"

namespace phalanx {

/// Goes on with a text: gives a language model the tokens so far, draws the next one from the scores behind the last of
/// them, and so on. Where the text has outgrown the model's context, the older half of what the model sees is let go.
class TextGenerator {
 public:
  struct Options {
    std::int64_t context;  // most tokens that the model takes

    /// Keys and values of tokens that were seen are kept, not computed again for each token. Scores are the same but
    /// for rounding, unless the model has experts with a capacity (MixtureOfExperts), which is that of the tokens
    /// computed at once: with the cache, a new token is computed alone and never dropped.
    bool cache = true;
    SamplingOptions sampling{};
  };

  /// The model's outputs are [n, t, classes] of inputs [n, t]. It must outlive the generator. Throws ConfigError where
  /// `cache` is wanted and the model has none.
  TextGenerator(Model& model, const Options& options);

  /// Draws up to `count` tokens behind `prompt`, which has one at least, and gives each to `next` as it comes; a false
  /// from there is the end. std::invalid_argument for an empty prompt.
  void run(std::vector<std::int64_t> prompt, std::int64_t count, const std::function<bool(std::int64_t token)>& next);

 private:
  Model& model_;
  Options options_;
  TokenSampler sampler_;
};

}  // namespace phalanx
