// SPDX-License-Identifier: Apache-2.0
#include "models/network.h"

#include <ATen/ops/empty.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "models/batch_norm.h"
#include "models/dropout.h"
#include "models/expert_parallel.h"
#include "models/segments.h"
#include "models/tensor_parallel.h"

namespace phalanx {
namespace {

using Dictionary = torch::OrderedDict<std::string, at::Tensor>;

NamedTensors list_of(const Dictionary& tensors, const std::set<std::string, std::less<>>& dropped) {
  NamedTensors list;
  for (const auto& tensor : tensors) {
    if (!dropped.contains(tensor.key())) list.emplace_back(tensor.key(), tensor.value());
  }
  return list;
}

// Returns the names of the tensors in the module `used`, or the tensor `used` itself.
std::vector<std::string> names_in(const Dictionary& tensors, const std::string& used) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors) {
    if (tensor.key() == used || tensor.key().starts_with(used + ".")) names.push_back(tensor.key());
  }
  return names;
}

std::uint64_t number_of(const std::string& name) {
  std::uint64_t number = 0;
  for (const char letter : name) number = mix(number, static_cast<unsigned char>(letter));
  return number;
}

void append(std::vector<std::string>& to, std::vector<std::string> names) {
  std::ranges::move(names, std::back_inserter(to));
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

Placements divide_layer(torch::nn::Module& module, const std::string& layer, const TensorPlan::value_type& entry,
                        const CommunicatorPtr& group) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("plan: \"" + entry.first + "\": the layer " + layer + " " + why);
  };
  auto* const divisible = dynamic_cast<TensorParallel*>(&module);
  if (divisible == nullptr) refuse("cannot be divided");
  Placements named;
  try {
    for (auto& [name, placement] : divisible->divide(parse_style(entry.second), group)) {
      named.emplace(layer + "." + name, std::move(placement));
    }
  } catch (const ConfigError& error) {
    refuse(error.what());
  }
  return named;
}

}  // namespace

// Numbers the dropouts before the first step, when all modules are registered and have their final names.
void Network::train(bool on) {
  torch::nn::Module::train(on);
  if (!on || numbered_) return;
  numbered_ = true;
  for (const auto& module : named_modules()) {
    auto* const dropout = module.value()->as<DropoutImpl>();
    if (dropout != nullptr) dropout->set_layer(number_of(module.key()));
  }
}

void Network::add_block(std::string name, const std::vector<std::string>& used,
                        std::function<at::Tensor(const at::Tensor& input)> forward) {
  Block block{.name = std::move(name), .forward = std::move(forward), .parameters = {}, .buffers = {}};
  const auto parameters = torch::nn::Module::named_parameters(), buffers = torch::nn::Module::named_buffers();
  for (const auto& part : used) {
    append(block.parameters, names_in(parameters, part));
    append(block.buffers, names_in(buffers, part));
  }
  blocks_.push_back(std::move(block));
}

void Network::add_blocks(const std::string& name, const Sequence& sequence) {
  const auto& layers = sequence.layers();
  const auto begins = [](const Sequence::Layer& layer) {
    return layer.module && layer.module->as<BatchNorm2dImpl>() == nullptr && !layer.module->parameters().empty();
  };
  std::size_t begin = 0;
  while (begin < layers.size()) {
    auto end = begin;
    while (end < layers.size() && !begins(layers[end])) ++end;  // layers before it, such as a dropout
    const auto first = std::min(end, layers.size() - 1);
    if (end < layers.size()) ++end;
    while (end < layers.size() && !begins(layers[end])) ++end;
    std::vector<std::string> used;
    for (auto i = begin; i < end; ++i) used.push_back(name + "." + layers[i].name);
    add_block(name + "." + layers[first].name, used, [&sequence, begin, end](const at::Tensor& input) {
      at::Tensor x = input;
      for (auto i = begin; i < end; ++i) x = sequence.layers()[i].forward(x);
      return x;
    });
    begin = end;
  }
}

at::Tensor Network::run(std::size_t begin, std::size_t end, at::Tensor x) const {
  for (auto i = begin; i < end; ++i) x = runner_ ? runner_(blocks_[i], x) : blocks_[i].forward(x);
  return x;
}

at::Tensor Network::forward(at::Tensor input) {
  if (blocks_.empty()) {
    throw std::logic_error("a Network must have blocks or override forward() or outputs(), but " + name() +
                           " does neither");
  }
  const auto run_blocks = [this](BlockRange range, at::Tensor x) { return run(range.begin, range.end, std::move(x)); };
  return run_in_segments({0, blocks_.size()}, blocks_.size(), is_training() ? segments_ : 0, run_blocks,
                         std::move(input));
}

bool Network::checkpoint_activations(std::int64_t segments) {
  if (blocks_.size() < 3) return false;
  segments_ = segments;
  return true;
}

void Network::keep_blocks(const std::vector<std::size_t>& blocks) {
  std::set<std::string, std::less<>> kept;
  for (const auto index : blocks) {
    kept.insert(blocks_.at(index).parameters.begin(), blocks_.at(index).parameters.end());
    kept.insert(blocks_.at(index).buffers.begin(), blocks_.at(index).buffers.end());
  }
  const auto drop = [&](const NamedTensors& tensors) {
    for (auto [name, tensor] : tensors) {
      if (kept.contains(name)) continue;
      tensor.set_data(at::empty({0}, tensor.options()));
      dropped_.insert(name);
    }
  };
  drop(named_parameters());
  drop(named_buffers());
}

Tensors Network::outputs(const Tensors& inputs) {
  TORCH_CHECK(inputs.size() == 1, name(), " takes one tensor, but got ", inputs.size());
  return {forward(inputs[0])};
}

NamedTensors Network::named_parameters() const { return list_of(torch::nn::Module::named_parameters(), dropped_); }

NamedTensors Network::named_buffers() const { return list_of(torch::nn::Module::named_buffers(), dropped_); }

Placements Network::divide(const TensorPlan& plan, const CommunicatorPtr& group) {
  std::set<std::string> unused;
  for (const auto& [pattern, style] : plan) unused.insert(pattern);
  Placements placements;
  for (const auto& module : named_modules()) {
    const auto* const entry = match(plan, module.key());
    if (entry == nullptr) continue;
    unused.erase(entry->first);
    placements.merge(divide_layer(*module.value(), module.key(), *entry, group));
  }
  if (!unused.empty()) throw ConfigError("plan: \"" + *unused.begin() + "\" matches no layer of the model");
  return placements;
}

void Network::overlap_exchange() {
  for (const auto& module : named_modules()) {
    auto* const layer = dynamic_cast<TensorParallel*>(module.value().get());
    if (layer != nullptr && layer->linear() != nullptr) layer->linear()->overlap_exchange();
  }
}

Placements Network::divide_experts(const CommunicatorPtr& experts, const CommunicatorPtr& batch) {
  Placements placements;
  for (const auto& module : named_modules()) {
    auto* const layer = dynamic_cast<ExpertParallel*>(module.value().get());
    if (layer == nullptr) continue;
    try {
      for (auto& [name, placement] : layer->divide_experts(experts, batch)) {
        placements.emplace(module.key() + "." + name, std::move(placement));
      }
    } catch (const ConfigError& error) {
      throw ConfigError("the layer " + module.key() + " " + error.what());
    }
  }
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
