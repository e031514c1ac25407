// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/parameter_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace phalanx {

using torch::autograd::variable_list;

// Runs after the node of a parameter, which is the last part of backward that touches its gradient. It runs even if a
// layer has accumulated the gradient itself and passed none to the node.
class ParameterHooks::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(const Arrived& arrived, std::size_t bucket, std::size_t parameter)
      : arrived_(arrived), bucket_(bucket), parameter_(parameter) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    arrived_(bucket_, parameter_);
    return outputs;
  }

 private:
  const Arrived& arrived_;
  std::size_t bucket_, parameter_;
};

// The key of a hook and the parameter's node that has it. Holding the node keeps it alive, since otherwise it lives
// only as long as a graph that uses it.
struct ParameterHooks::Added {
  decltype(torch::autograd::impl::grad_accumulator({})) node;
  std::uintptr_t key;
};

ParameterHooks::ParameterHooks(const FlatParameters& parameters, Arrived arrived) : arrived_(std::move(arrived)) {
  const auto& buckets = parameters.buckets();
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (std::size_t i = 0; i < buckets[bucket].parameters.size(); ++i) {
      const auto& parameter = buckets[bucket].parameters[i];
      if (!parameter.requires_grad()) continue;
      auto node = torch::autograd::impl::grad_accumulator(parameter);
      const auto key = node->add_post_hook(std::make_unique<Hook>(arrived_, bucket, i));
      added_.push_back({std::move(node), key});
    }
  }
}

ParameterHooks::~ParameterHooks() {
  for (const auto& [node, key] : added_) node->del_post_hook(key);
}

}  // namespace phalanx
