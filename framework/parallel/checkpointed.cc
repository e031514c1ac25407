// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/checkpointed.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "framework/parallel/autocast.h"
#include "framework/parallel/random_rows.h"
#include "framework/parallel/random_state.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Function = std::function<at::Tensor(const at::Tensor&)>;

thread_local bool is_recomputing = false;

struct RecomputeScope final {
  RecomputeScope(const at::Tensor& random, const c10::Device& of) : device(of), random_before(random_state(of)) {
    set_random_state(random, device);
    is_recomputing = true;
  }
  ~RecomputeScope() {
    is_recomputing = before;
    set_random_state(random_before, device);
  }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

  bool before = is_recomputing;
  c10::Device device;
  at::Tensor random_before;
};

struct SavedContext final : torch::CustomClassHolder {
  SavedContext(Function what, std::shared_ptr<HostCopy> copy, c10::ScalarType with, at::Tensor state)
      : function(std::move(what)),
        input(std::move(copy)),
        autocast(with),
        random(std::move(state)),
        rows(RandomRows::current()) {}
  Function function;
  std::shared_ptr<HostCopy> input;  // null: saved for backward on the device
  c10::ScalarType autocast;
  at::Tensor random;
  std::optional<RandomKey> rows;
};

class Checkpointed final : public torch::autograd::Function<Checkpointed> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::function<at::Tensor(const at::Tensor&)>& function,
                            const std::shared_ptr<HostCopy>& copy) {
    if (copy == nullptr) context->save_for_backward({input});
    context->saved_data["kept"] = c10::IValue::make_capsule(c10::make_intrusive<SavedContext>(
        function, copy, Autocast::current(input.device().type()), random_state(input.device())));
    const auto version = input._version();
    at::Tensor output = function(input);
    if (copy != nullptr && input._version() != version) {  // autograd itself checks the tensors that it saves
      throw std::logic_error(
          "a checkpointed function has changed its input in place, so the copy of it is not the input");
    }
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto& saved = static_cast<const SavedContext&>(*capsule);
    const at::Tensor kept = saved.input == nullptr ? context->get_saved_variables()[0] : saved.input->restore();
    const at::Tensor input = kept.detach().requires_grad_();
    const at::Tensor output = recompute(saved, input);
    torch::autograd::backward({output}, {gradients[0]});
    return {input.grad(), {}, {}};
  }

 private:
  static at::Tensor recompute(const SavedContext& saved, const at::Tensor& input) {
    const at::AutoGradMode grad(true);
    const Autocast autocast(input.device().type(), saved.autocast);
    const RecomputeScope mark(saved.random, input.device());
    const RandomRows rows(saved.rows);
    return saved.function(input);
  }
};

}  // namespace

at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input) {
  if (!at::GradMode::is_enabled() || !input.requires_grad()) return function(input);
  return Checkpointed::apply(input, function, std::shared_ptr<HostCopy>());
}

at::Tensor checkpointed_on_host(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input,
                                std::shared_ptr<HostCopy>& last) {
  if (!at::GradMode::is_enabled() || !input.requires_grad()) return function(input);
  last = std::make_shared<HostCopy>(input, last);
  return Checkpointed::apply(input, function, last);
}

bool recomputing() { return is_recomputing; }

}  // namespace phalanx
