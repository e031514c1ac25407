// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "models/model.h"

namespace phalanx {

/// Low-rank adapters of linear layers (Hu et al. 2021, LoRA: Low-Rank Adaptation of Large Language Models,
/// arXiv:2106.09685, section 4.1): y = x W + (alpha / rank) B A dropout(x), where A is [rank, in] and B [out, rank].
/// B begins as zeros, so the first output is that of the layer alone, to the bit.
struct LowRank {
  std::vector<std::string> layers;  // names, where * is any part of a name
  std::int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
};

/// Adds them to the layers that are named: parameters LAYER.lora_A.weight and LAYER.lora_B.weight, with A as
/// torch::nn::Linear's weights begin. Layers are those of models/linear.h, and gpt's projections. Before the model is
/// divided; such layers then stay whole. Returns how many layers these are. Throws ConfigError for a pattern that
/// matches none, and a model that has no such layers.
std::int64_t add_adapters(Model& model, const LowRank& adapters);

/// Returns true if a parameter belongs to an adapter.
bool of_adapter(const std::string& parameter);

/// Parameters and buffers without adapters, of a model that has some: each weight W with what its adapter adds to it.
NamedTensors merged_weights(const Model& model);

}  // namespace phalanx
