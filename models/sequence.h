// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Layers in sequence, with the names that they have in a torch.nn.Sequential: numbers, or given names. Unlike
/// torch::nn::Sequential, it accepts any callable and compiles fast.
class Sequence : public torch::nn::Module {
 public:
  using Function = std::function<at::Tensor(const at::Tensor& input)>;

  struct Layer {
    std::string name;
    Function forward;
    std::shared_ptr<torch::nn::Module> module;  // null for a function
  };

  /// Adds a module with forward(tensor).
  template <class Module>
  Sequence& add(const std::string& name, std::shared_ptr<Module> module) {
    register_module(name, module);
    layers_.push_back({name, [layer = module.get()](const at::Tensor& x) { return layer->forward(x); }, module});
    return *this;
  }
  template <class Module>
  Sequence& add(std::shared_ptr<Module> module) {
    return add(std::to_string(layers_.size()), std::move(module));
  }
  template <class Module>
  Sequence& add(const torch::nn::ModuleHolder<Module>& holder) {
    return add(holder.ptr());
  }
  template <class Module>
  Sequence& add(const std::string& name, const torch::nn::ModuleHolder<Module>& holder) {
    return add(name, holder.ptr());
  }

  /// Adds a layer without parameters, which also takes the next number.
  Sequence& add_function(Function function) {
    layers_.push_back({std::to_string(layers_.size()), std::move(function), nullptr});
    return *this;
  }

  at::Tensor forward(const at::Tensor& input) const {
    at::Tensor x = input;
    for (const auto& layer : layers_) x = layer.forward(x);
    return x;
  }

  const std::vector<Layer>& layers() const { return layers_; }

 private:
  std::vector<Layer> layers_;
};

}  // namespace phalanx
