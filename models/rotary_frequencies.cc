// SPDX-License-Identifier: Apache-2.0
#include "models/rotary_frequencies.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

void check(const RopeScaling& scaling) {
  const std::string& type = scaling.rope_type;
  const auto refuse_if = [&type](bool wrong, const std::string& why) {
    if (wrong) throw ConfigError("rope_scaling: rope_type: " + type + " " + why);
  };
  const bool of_context = type == "llama3" || type == "yarn";
  refuse_if(type == "default" && scaling.factor != 1, "stretches nothing, so leave factor at 1 or name another type");
  refuse_if(of_context && scaling.original_max_position_embeddings < 1, "needs original_max_position_embeddings");
  refuse_if(type == "llama3" && scaling.low_freq_factor >= scaling.high_freq_factor,
            "needs a low_freq_factor below high_freq_factor");
  refuse_if(type == "yarn" && scaling.beta_slow >= scaling.beta_fast, "needs a beta_slow below beta_fast");
}

// Wavelengths between the two limits are partly stretched.
at::Tensor stretched_by_llama3(const RopeScaling& scaling, const at::Tensor& angles) {
  const auto context = static_cast<double>(scaling.original_max_position_embeddings);
  const at::Tensor turns = context * angles / kTurn;  // in the original context
  const at::Tensor kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  const at::Tensor share = at::clamp(kept, 0, 1);
  return (1 - share) * angles / scaling.factor + share * angles;
}

// Features that turn between beta_fast and beta_slow times in the original context are partly stretched.
at::Tensor stretched_by_yarn(const RopeScaling& scaling, double base, std::int64_t width, const at::Tensor& angles) {
  const auto context = static_cast<double>(scaling.original_max_position_embeddings);
  const auto feature = [&](double turns) {
    return static_cast<double>(width) * std::log(context / (turns * kTurn)) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(feature(scaling.beta_fast)), 0.0);
  double high = std::min(std::ceil(feature(scaling.beta_slow)), static_cast<double>(width - 1));
  if (low == high) high += 0.001;
  const at::Tensor share = at::clamp((at::arange(width / 2, at::kFloat) - low) / (high - low), 0, 1);
  return angles / scaling.factor * share + angles * (1 - share);
}

}  // namespace

RotaryFrequencies rotary_frequencies(const RopeScaling& scaling, double base, std::int64_t width) {
  check(scaling);
  const at::Tensor exponents = at::arange(0, width, 2, at::kFloat) / static_cast<double>(width);
  const at::Tensor angles = at::pow(base, exponents).reciprocal();
  if (scaling.rope_type == "linear") return {.angles = angles / scaling.factor};
  if (scaling.rope_type == "llama3") return {.angles = stretched_by_llama3(scaling, angles)};
  if (scaling.rope_type != "yarn") return {.angles = angles};
  const double scale =
      scaling.attention_factor > 0 ? scaling.attention_factor : 0.1 * std::log(std::max(scaling.factor, 1.0)) + 1;
  return {.angles = stretched_by_yarn(scaling, base, width, angles), .scale = scale};
}

}  // namespace phalanx
