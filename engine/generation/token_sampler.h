// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "datasets/random_stream.h"

namespace phalanx {

struct SamplingOptions {
  double temperature = 1;  // divides scores; 0 always selects the most likely token
  std::int64_t top_k = 0;  // number of most likely tokens to draw from; 0 means all
  double top_p = 1;        // draws from the smallest set of most likely tokens with at least this total probability
  std::uint64_t seed = 1;
};

/// Draws tokens from the scores of a language model. Candidates are the tokens that top_k and top_p leave (Holtzman et
/// al. 2019, The Curious Case of Neural Text Degeneration, arXiv:1904.09751, section 3.1), each with its probability
/// among them. The same scores and seed give the same tokens on any machine.
class TokenSampler {
 public:
  /// Throws ConfigError for a temperature below 0, a top_k below 0, or a top_p that is not above 0 and at most 1.
  explicit TokenSampler(const SamplingOptions& options);

  /// Draws a token. `scores`: [classes], floating point, logarithms of probabilities up to a constant. Throws Error if
  /// a score is NaN.
  std::int64_t draw(const at::Tensor& scores);

 private:
  SamplingOptions options_;
  RandomStream random_;
};

}  // namespace phalanx
