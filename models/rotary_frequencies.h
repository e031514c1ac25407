// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// The config fields that stretch the wavelengths of rotary positions, for longer sequences than in pretraining. Keys
/// and formulas are as in Hugging Face's `rope_parameters` (`rope_scaling` before transformers 5).
struct RopeScaling {
  std::string rope_type = "default";
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 0;
  std::int64_t original_max_position_embeddings = 0;

  template <class V>
  void visit(V& v) {
    v("rope_type", rope_type, "how wavelengths change. default: not at all; linear, llama3, yarn: stretched by factor",
      config::one_of({"default", "linear", "llama3", "yarn"}));
    v("factor", factor, "by how much long wavelengths are stretched", config::at_least(1));
    v("low_freq_factor", low_freq_factor, "llama3: wavelengths above the original context / this are fully stretched",
      config::above(0));
    v("high_freq_factor", high_freq_factor, "llama3: wavelengths below the original context / this stay unchanged",
      config::above(0));
    v("beta_fast", beta_fast, "yarn: features that turn more often in the original context stay unchanged",
      config::above(0));
    v("beta_slow", beta_slow, "yarn: features that turn less often in the original context are fully stretched",
      config::above(0));
    v("attention_factor", attention_factor, "yarn: factor of queries and keys; 0: 0.1 ln(factor) + 1",
      config::at_least(0));
    v("original_max_position_embeddings", original_max_position_embeddings,
      "llama3, yarn: the context of the pretraining", config::at_least(0));
  }
};

struct RotaryFrequencies {
  at::Tensor angles;  // rotation of each pair of features from one position to the next: [width / 2] float32
  double scale = 1;   // factor for queries and keys
};

/// Returns the frequencies for heads of `width` features. The wavelengths are 2 pi base^(2 i / width), stretched by one
/// of these methods:
///
///   linear  Chen et al. 2023, Position Interpolation, arXiv:2306.15595
///   llama3  Grattafiori et al. 2024, The Llama 3 Herd of Models, arXiv:2407.21783; as Llama 3.1 and 3.2
///   yarn    Peng et al. 2023, YaRN, arXiv:2309.00071, section 3
///
/// Throws ConfigError for values that contradict each other.
RotaryFrequencies rotary_frequencies(const RopeScaling& scaling, double base, std::int64_t width);

}  // namespace phalanx
