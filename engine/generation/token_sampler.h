// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "datasets/random_stream.h"

namespace phalanx {

struct SamplingOptions {
  double temperature = 1;  // scores are divided by it; 0: always the most likely token
  std::int64_t top_k = 0;  // one of so many most likely tokens; 0: of all
  double top_p = 1;        // one of the fewest most likely tokens whose probabilities add up to at least this
  std::uint64_t seed = 1;
};

/// Draws tokens by the scores that a language model gives: of those that top_k and top_p leave (Holtzman et al. 2019,
/// The Curious Case of Neural Text Degeneration, arXiv:1904.09751, section 3.1), each with its probability among them.
/// The same scores and seed give the same tokens everywhere.
class TokenSampler {
 public:
  /// Throws ConfigError for a temperature below 0, a top_k below 0, or a top_p that is not above 0 and at most 1.
  explicit TokenSampler(const SamplingOptions& options);

  /// scores [classes], floating point: logarithms of probabilities, but for a constant. Throws Error for one that is
  /// not a number.
  std::int64_t draw(const at::Tensor& scores);

 private:
  SamplingOptions options_;
  RandomStream random_;
};

}  // namespace phalanx
