// SPDX-License-Identifier: Apache-2.0
#include "models/chain_network.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "models/batch_norm.h"
#include "models/segments.h"

namespace phalanx {
namespace {

using Dictionary = torch::OrderedDict<std::string, at::Tensor>;

// Returns the names of the tensors in the module `used`, or the tensor `used` itself.
std::vector<std::string> names_in(const Dictionary& tensors, const std::string& used) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors) {
    if (tensor.key() == used || tensor.key().starts_with(used + ".")) names.push_back(tensor.key());
  }
  return names;
}

void append(std::vector<std::string>& to, std::vector<std::string> names) {
  std::ranges::move(names, std::back_inserter(to));
}

NamedTensors without(NamedTensors tensors, const std::set<std::string, std::less<>>& dropped) {
  std::erase_if(tensors, [&](const auto& named) { return dropped.contains(named.first); });
  return tensors;
}

}  // namespace

void ChainNetwork::add_block(std::string name, const std::vector<std::string>& used,
                             std::function<at::Tensor(const at::Tensor& input)> forward) {
  Block block{.name = std::move(name), .forward = std::move(forward), .parameters = {}, .buffers = {}};
  const auto parameters = torch::nn::Module::named_parameters(), buffers = torch::nn::Module::named_buffers();
  for (const auto& part : used) {
    append(block.parameters, names_in(parameters, part));
    append(block.buffers, names_in(buffers, part));
  }
  blocks_.push_back(std::move(block));
}

void ChainNetwork::add_blocks(const std::string& name, const Sequence& sequence) {
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

at::Tensor ChainNetwork::run(std::size_t begin, std::size_t end, at::Tensor x) const {
  for (auto i = begin; i < end; ++i) x = runner_ ? runner_(blocks_[i], x) : blocks_[i].forward(x);
  return x;
}

at::Tensor ChainNetwork::forward(at::Tensor input) {
  if (blocks_.empty()) throw std::logic_error("a ChainNetwork must have blocks, but " + name() + " has none");
  const auto run_blocks = [this](BlockRange range, at::Tensor x) { return run(range.begin, range.end, std::move(x)); };
  return run_in_segments({0, blocks_.size()}, blocks_.size(), is_training() ? segments_ : CheckpointedSegments(),
                         run_blocks, std::move(input));
}

bool ChainNetwork::recompute_blocks(const CheckpointedSegments& segments) {
  if (blocks_.size() < 3) return false;
  segments_ = segments;
  return true;
}

void ChainNetwork::keep_blocks(const std::vector<std::size_t>& blocks) {
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

void ChainNetwork::set_block_runner(BlockRunner runner) { runner_ = std::move(runner); }

NamedTensors ChainNetwork::named_parameters() const { return without(Network::named_parameters(), dropped_); }

NamedTensors ChainNetwork::named_buffers() const { return without(Network::named_buffers(), dropped_); }

void ChainNetwork::on_adapted(const std::string& weight, const std::vector<std::string>& added) {
  for (auto& block : blocks_) {
    if (std::ranges::count(block.parameters, weight) > 0) append(block.parameters, added);
  }
}

}  // namespace phalanx
