#include "engine/sync/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {

using torch::autograd::variable_list;

// After the node of a parameter, which is the last of backward that touches its gradient: also where a layer has
// added it by itself and the node got none.
class GradientHooks::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(GradientHooks& hooks, std::size_t bucket) : hooks_(hooks), bucket_(bucket) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    hooks_.arrived(bucket_);
    return outputs;
  }

 private:
  GradientHooks& hooks_;
  std::size_t bucket_;
};

// A hook's key at a parameter's node, which would otherwise live no longer than a graph.
struct GradientHooks::Added {
  decltype(torch::autograd::impl::grad_accumulator({})) node;
  std::uintptr_t key;
};

GradientHooks::GradientHooks(const FlatParameters& parameters, std::int64_t backwards, Ready ready)
    : backwards_(backwards), ready_(std::move(ready)) {
  for (const auto& bucket : parameters.buckets()) {
    auto& size = sizes_.emplace_back(0);
    for (const auto& parameter : bucket.parameters) {
      if (!parameter.requires_grad()) continue;
      auto node = torch::autograd::impl::grad_accumulator(parameter);
      const auto key = node->add_post_hook(std::make_unique<Hook>(*this, sizes_.size() - 1));
      added_.push_back({std::move(node), key});
      ++size;
    }
  }
  start();
}

GradientHooks::~GradientHooks() {
  for (const auto& [node, key] : added_) node->del_post_hook(key);
}

void GradientHooks::start() {
  missing_.clear();
  for (const auto size : sizes_) missing_.push_back(size * backwards_);
}

void GradientHooks::arrived(std::size_t bucket) {
  if (backwards_ > 0 && missing_[bucket] == 0) {
    throw std::logic_error("a parameter got more gradients than there were backward passes: one more came for bucket " +
                           std::to_string(bucket) + ", which is complete; train with strategy: all_reduce");
  }
  if (--missing_[bucket] == 0) ready_(bucket);
}

}  // namespace phalanx
