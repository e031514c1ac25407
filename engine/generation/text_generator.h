// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/generation/token_sampler.h"
#include "models/incremental_decoding.h"
#include "models/model.h"

namespace phalanx {

/// Continues a text: gives a language model the tokens so far, draws the next token from the scores for the last
/// position, and repeats this. If the text exceeds the model's context, the older half of the tokens in the context is
/// dropped.
class TextGenerator {
 public:
  struct Options {
    std::int64_t context;  // maximum number of tokens that the model accepts

    /// If true, keys and values of earlier tokens are kept instead of being recomputed for each token. Scores are the
    /// same up to rounding, unless the model has experts with a capacity (MixtureOfExperts). The capacity applies to
    /// the tokens computed together: with the cache, a new token is computed alone and never dropped.
    bool cache = true;
    SamplingOptions sampling{};
  };

  /// The model's outputs must be [n, t, classes] for inputs [n, t]. It must outlive the generator. Throws ConfigError
  /// if `cache` is set but the model has none.
  TextGenerator(Model& model, const Options& options);

  /// Draws up to `count` tokens after `prompt` and passes each to `next`, until that returns false. Throws
  /// std::invalid_argument if the prompt is empty.
  void run(std::vector<std::int64_t> prompt, std::int64_t count, const std::function<bool(std::int64_t token)>& next);

 private:
  Model& model_;
  IncrementalDecoding* decoding_ = nullptr;  // the model, if the options ask for a cache
  Options options_;
  TokenSampler sampler_;
};

}  // namespace phalanx
