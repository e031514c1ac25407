// SPDX-License-Identifier: Apache-2.0
#include "models/network.h"

#include <fnmatch.h>

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "models/batch_norm.h"
#include "models/dropout.h"
#include "models/expert_parallel.h"
#include "models/expert_parallel_layer.h"
#include "models/tensor_parallel_layer.h"

namespace phalanx {
namespace {

NamedTensors list_of(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  NamedTensors list;
  for (const auto& tensor : tensors) list.emplace_back(tensor.key(), tensor.value());
  return list;
}

std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = 0;
  for (const char letter : name) number = mix(number, static_cast<unsigned char>(letter));
  return number;
}

bool is_of_torch(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr || module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

// Returns the only pattern of the plan that matches, or null if no pattern matches.
const TensorPlan::value_type* match(const TensorPlan& plan, const std::string& layer) {
  const TensorPlan::value_type* found = nullptr;
  for (const auto& entry : plan) {
    if (::fnmatch(entry.first.c_str(), layer.c_str(), 0) != 0) continue;
    if (found != nullptr) {
      throw ConfigError("plan: \"" + found->first + "\" and \"" + entry.first + "\" both match the layer " + layer);
    }
    found = &entry;
  }
  return found;
}

Placements shard_layer(torch::nn::Module& module, const std::string& layer, const TensorPlan::value_type& entry,
                       const CommunicatorPtr& group) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("plan: \"" + entry.first + "\": the layer " + layer + " " + why);
  };
  auto* const divisible = dynamic_cast<TensorParallelLayer*>(&module);
  if (divisible == nullptr) refuse("cannot be divided");
  Placements named;
  try {
    for (auto& [name, placement] : divisible->shard(parse_style(entry.second), group)) {
      named.emplace(layer + "." + name, std::move(placement));
    }
  } catch (const ConfigError& error) {
    refuse(error.what());
  }
  return named;
}

}  // namespace

void Network::train(bool on) {
  torch::nn::Module::train(on);
  if (on && !prepared_) prepare_layers();
}

// Numbers the dropouts before the first step, when all modules are registered and have their final names.
void Network::prepare_layers() {
  prepared_ = true;
  for (const auto& module : named_modules()) {
    if (auto* const dropout = module.value()->as<DropoutImpl>()) dropout->set_layer(number_of(module.key()));
    if (dynamic_cast<ExpertParallelLayer*>(module.value().get()) == nullptr) continue;
    if (dynamic_cast<ExpertParallel*>(this) == nullptr) {
      throw std::logic_error("the layer " + module.key() + " has experts, so " + name() +
                             " must implement ExpertParallel (models/expert_parallel.h)");
    }
  }
}

at::Tensor Network::forward(at::Tensor /*input*/) {
  throw std::logic_error("a Network must override forward() or outputs(), but " + name() + " does neither");
}

Tensors Network::outputs(const Tensors& inputs) {
  TORCH_CHECK(inputs.size() == 1, name(), " takes one tensor, but got ", inputs.size());
  return {forward(inputs[0])};
}

NamedTensors Network::named_parameters() const { return list_of(torch::nn::Module::named_parameters()); }

NamedTensors Network::named_buffers() const { return list_of(torch::nn::Module::named_buffers()); }

Placements Network::partition_layers(const TensorPlan& plan, const CommunicatorPtr& group) {
  std::set<std::string> unused;
  for (const auto& [pattern, style] : plan) unused.insert(pattern);
  Placements placements;
  for (const auto& module : named_modules()) {
    const auto* const entry = match(plan, module.key());
    if (entry == nullptr) continue;
    unused.erase(entry->first);
    placements.merge(shard_layer(*module.value(), module.key(), *entry, group));
  }
  if (!unused.empty()) throw ConfigError("plan: \"" + *unused.begin() + "\" matches no layer of the model");
  return placements;
}

std::int64_t Network::synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) {
  std::int64_t layers = 0;
  for (const auto& module : named_modules()) {
    if (auto* norm = module.value()->as<BatchNorm2dImpl>()) {
      norm->synchronize(statistics);
      ++layers;
    } else if (is_of_torch(*module.value())) {
      throw ConfigError("train.sync_batch_norm: the model's " + module.key() +
                        " is LibTorch's batch norm, which sees only one rank; use the one in models/batch_norm.h");
    }
  }
  return layers;
}

}  // namespace phalanx
