// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/checkpointed.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "framework/parallel/autocast.h"
#include "framework/parallel/random_rows.h"
#include "framework/parallel/random_state.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Function = std::function<at::Tensor(const at::Tensor&)>;

thread_local bool again = false;

struct Again final {
  Again(const at::Tensor& random, const c10::Device& of) : device(of), random_before(random_state(of)) {
    set_random_state(random, device);
    again = true;
  }
  ~Again() {
    again = before;
    set_random_state(random_before, device);
  }
  Again(const Again&) = delete;
  Again& operator=(const Again&) = delete;

  bool before = again;
  c10::Device device;
  at::Tensor random_before;
};

struct Kept final : torch::CustomClassHolder {
  Kept(Function what, c10::ScalarType with, at::Tensor state)
      : function(std::move(what)), autocast(with), random(std::move(state)), rows(RandomRows::current()) {}
  Function function;
  c10::ScalarType autocast;
  at::Tensor random;
  std::optional<RandomKey> rows;
};

class Checkpointed final : public torch::autograd::Function<Checkpointed> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::function<at::Tensor(const at::Tensor&)>& function) {
    context->save_for_backward({input});
    context->saved_data["kept"] = c10::IValue::make_capsule(
        c10::make_intrusive<Kept>(function, Autocast::current(input.device().type()), random_state(input.device())));
    return function(input);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto& kept = static_cast<const Kept&>(*capsule);
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_();
    const at::Tensor output = compute_again(kept, input);
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), {}};
  }

 private:
  static at::Tensor compute_again(const Kept& kept, const at::Tensor& input) {
    const at::AutoGradMode grad(true);
    const Autocast autocast(input.device().type(), kept.autocast);
    const Again mark(kept.random, input.device());
    const RandomRows rows(kept.rows);
    return kept.function(input);
  }
};

}  // namespace

at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input) {
  if (!at::GradMode::is_enabled() || !input.requires_grad()) return function(input);
  return Checkpointed::apply(input, function);
}

bool recomputing() { return again; }

}  // namespace phalanx
