#include "engine/sync/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {

class GradientHooks::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientHooks& hooks, std::size_t bucket) : hooks_(hooks), bucket_(bucket) {}
  void operator()(const torch::autograd::Variable&) override { hooks_.arrived(bucket_); }

 private:
  GradientHooks& hooks_;
  std::size_t bucket_;
};

GradientHooks::GradientHooks(const FlatParameters& parameters, std::int64_t backwards, Ready ready)
    : backwards_(backwards), ready_(std::move(ready)) {
  for (const auto& bucket : parameters.buckets()) {
    for (const auto& parameter : bucket.parameters) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Hook>(*this, parameters_.size()));
    }
    parameters_.push_back(bucket.parameters);
  }
  start();
}

GradientHooks::~GradientHooks() {
  for (const auto& bucket : parameters_) {
    for (const auto& parameter : bucket) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void GradientHooks::start() {
  missing_.clear();
  for (const auto& bucket : parameters_) missing_.push_back(static_cast<std::int64_t>(bucket.size()) * backwards_);
}

void GradientHooks::arrived(std::size_t bucket) {
  if (backwards_ > 0 && missing_[bucket] == 0) {
    throw std::logic_error("a parameter got more gradients than there were backwards: one more has come for bucket " +
                           std::to_string(bucket) + ", which is complete");
  }
  if (--missing_[bucket] == 0) ready_(bucket);
}

}  // namespace phalanx
