// SPDX-License-Identifier: Apache-2.0
#include "models/low_rank.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <fnmatch.h>

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "models/apply_linear.h"
#include "models/dropout.h"
#include "models/network.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {
namespace {

constexpr const char *kA = "lora_A", *kB = "lora_B";

// Registers a module `name` whose only parameter is "weight".
at::Tensor add_weight(torch::nn::Module& to, const char* name, const at::Tensor& values) {
  const auto holder = to.register_module(name, std::make_shared<torch::nn::Module>(name));
  return holder->register_parameter("weight", values);
}

}  // namespace

void Network::adapt(torch::nn::Module& module, const std::string& layer, TensorParallelLinear& linear,
                    const LowRank& adapters) {
  const at::Tensor weight = module.named_parameters(/*recurse=*/false)["weight"];
  const bool out_in = linear.layout() == WeightLayout::kOutIn;
  const std::int64_t in = weight.size(out_in ? 1 : 0), out = weight.size(out_in ? 0 : 1);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const auto options = weight.options().requires_grad(false);
  const at::Tensor a = add_weight(module, kA, at::empty({adapters.rank, in}, options).uniform_(-bound, bound));
  const at::Tensor b = add_weight(module, kB, at::zeros({out, adapters.rank}, options));
  const double scale = adapters.alpha / static_cast<double>(adapters.rank);
  std::shared_ptr<DropoutImpl> dropout;
  if (adapters.dropout > 0) {
    dropout = module.register_module("lora_dropout", std::make_shared<DropoutImpl>(adapters.dropout));
  }
  linear.adapt([a, b, scale, dropout](const at::Tensor& input) {
    return apply_linear(apply_linear(dropout ? dropout->forward(input) : input, a, {}), b, {}) * scale;
  });
  const std::string prefix = layer + ".";
  on_adapted(prefix + "weight", {prefix + kA + ".weight", prefix + kB + ".weight"});
  adapted_.push_back({layer, a, b, scale, out_in});
}

std::int64_t Network::add_adapters(const LowRank& adapters) {
  const at::NoGradGuard no_grad;
  std::vector<bool> used(adapters.layers.size(), false);
  for (const auto& module : named_modules()) {
    auto* const layer = dynamic_cast<TensorParallelLayer*>(module.value().get());
    TensorParallelLinear* const linear = layer == nullptr ? nullptr : layer->linear();
    if (linear == nullptr) continue;
    bool wanted = false;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (::fnmatch(adapters.layers[i].c_str(), module.key().c_str(), 0) != 0) continue;
      wanted = used[i] = true;
    }
    if (wanted) adapt(*module.value(), module.key(), *linear, adapters);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) throw ConfigError("lora.layers: \"" + adapters.layers[i] + "\" matches no linear layer of the model");
  }
  return static_cast<std::int64_t>(adapted_.size());
}

NamedTensors Network::merged() const {
  const at::NoGradGuard no_grad;
  NamedTensors all;
  for (const auto& named : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : named) {
      if (!of_adapter(name)) all.emplace_back(name, tensor.detach().clone());
    }
  }
  const std::map<std::string, at::Tensor> by_name(all.begin(), all.end());
  for (const auto& [layer, a, b, scale, out_in] : adapted_) {
    const at::Tensor change = at::mm(b, a) * scale;
    at::Tensor weight = by_name.at(layer + ".weight");
    weight.add_(out_in ? change : change.t());
  }
  return all;
}

std::int64_t add_adapters(Model& model, const LowRank& adapters) {
  auto* const network = as<Network>(model);
  if (network == nullptr) throw ConfigError("lora.layers: the model has no layers to which adapters can be added");
  return network->add_adapters(adapters);
}

bool of_adapter(const std::string& parameter) {
  return parameter.ends_with(std::string(".") + kA + ".weight") ||
         parameter.ends_with(std::string(".") + kB + ".weight");
}

NamedTensors merged_weights(const Model& model) { return dynamic_cast<const Network&>(model).merged(); }

}  // namespace phalanx
