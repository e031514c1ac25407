// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "models/model.h"

namespace phalanx {

/// Low-rank adapters of linear layers (Hu et al. 2021, LoRA: Low-Rank Adaptation of Large Language Models,
/// arXiv:2106.09685, section 4.1): y = x W + (alpha / rank) B A dropout(x), where A is [rank, in] and B is [out, rank].
/// B is initialized with zeros, so the first output equals the layer's own output, bit for bit.
struct LowRank {
  std::vector<std::string> layers;  // names, where * matches any part of a name
  std::int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
};

/// Adds adapters to the named layers: parameters LAYER.lora_A.weight and LAYER.lora_B.weight, where A has the initial
/// values of torch::nn::Linear. Layers of models/linear.h and the projections of gpt can have adapters. Must be called
/// before the model is partitioned; the adapted layers then stay whole. Returns the number of adapted layers. Throws
/// ConfigError for a pattern that matches no layer, and for a model without such layers.
std::int64_t add_adapters(Model& model, const LowRank& adapters);

/// Returns true if a parameter belongs to an adapter.
bool of_adapter(const std::string& parameter);

/// Returns the parameters and buffers of an adapted model without its adapters: each adapted weight W has the product
/// of its adapter added to it.
NamedTensors merged_weights(const Model& model);

}  // namespace phalanx
