// SPDX-License-Identifier: Apache-2.0
#include "engine/generation/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {

TokenSampler::TokenSampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    throw ConfigError("temperature: must be a number of at least 0");
  }
  if (options.top_k < 0) throw ConfigError("top_k: must be at least 0; 0 leaves all tokens");
  if (!(options.top_p > 0 && options.top_p <= 1)) throw ConfigError("top_p: must be above 0 and at most 1");
}

std::int64_t TokenSampler::draw(const at::Tensor& scores) {
  const at::Tensor all = scores.to(at::kDouble).contiguous();
  const auto* const score = all.const_data_ptr<double>();
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(all.numel()));
  std::iota(tokens.begin(), tokens.end(), 0);
  for (const auto token : tokens) {
    if (std::isnan(score[token])) throw Error("the score of token " + std::to_string(token) + " is not a number");
  }
  const auto likelier = [score](std::int64_t a, std::int64_t b) {
    return score[a] > score[b] || (score[a] == score[b] && a < b);
  };
  if (options_.temperature == 0) return *std::ranges::min_element(tokens, likelier);
  auto kept = tokens.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(options_.top_k));
  std::ranges::partial_sort(
      tokens, tokens.begin() + static_cast<std::ptrdiff_t>(options_.top_p < 1 ? tokens.size() : kept), likelier);
  tokens.resize(kept);
  std::vector<double> weights;
  const double highest = *std::max_element(score, score + all.numel());
  for (const auto token : tokens) weights.push_back(std::exp((score[token] - highest) / options_.temperature));
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options_.top_p < 1) {
    double nucleus = 0;
    std::size_t count = 0;
    while (count < weights.size() && nucleus < options_.top_p * sum) nucleus += weights[count++];
    weights.resize(std::max<std::size_t>(1, count));
    sum = std::max(nucleus, weights.front());
  }
  constexpr double kUnit = 0x1p-53;
  double left = static_cast<double>(random_.next() >> 11) * kUnit * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return tokens[weights.size() - 1];
}

}  // namespace phalanx
