// SPDX-License-Identifier: Apache-2.0
#include "models/apply_linear.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <optional>
#include <string_view>

#include "framework/parallel/autocast.h"
#include "framework/parallel/deferred_gradients.h"
#include "framework/parallel/padded_columns.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Bias = std::optional<at::Tensor>;

using OneDnnLinear = at::Tensor(const at::Tensor& input, const at::Tensor& weight, const Bias& bias,
                                std::string_view attribute, c10::List<std::optional<c10::Scalar>> scalars,
                                std::optional<std::string_view> algorithm);

// Returns nothing if LibTorch was built without oneDNN.
std::optional<c10::TypedOperatorHandle<OneDnnLinear>> one_dnn_linear() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!at::hasMKLDNN() || !found) return {};
  return found->typed<OneDnnLinear>();
}

// Returns rows [n, k] times the transpose of weight [m, k]. Uses LibTorch if autograd must record the product and for
// everything that oneDNN does not support here: tensors other than float32 on the CPU, k = 0, and weights whose
// elements overlap or have gaps.
at::Tensor product(const at::Tensor& rows, const at::Tensor& weight, const Bias& bias = {}) {
  static const auto fast = one_dnn_linear();
  if (!fast || !at::globalContext().userEnabledMkldnn() || at::GradMode::is_enabled() || !rows.is_cpu() ||
      rows.scalar_type() != at::kFloat || rows.size(1) == 0 || !weight.is_non_overlapping_and_dense()) {
    return at::linear(rows, weight, bias);
  }
  return fast->call(rows, weight, bias, "none", c10::List<std::optional<c10::Scalar>>(), "");
}

// Returns true if autograd would only add the gradient of this parameter to grad.
bool only_adds(const at::Tensor& weight) {
  const auto* const asked = torch::autograd::get_current_graph_task_exec_info();
  const at::Tensor& gradient = weight.grad();
  return weight.is_leaf() && weight.requires_grad() && gradient.defined() && gradient.layout() == at::kStrided &&
         gradient.scalar_type() == weight.scalar_type() && !at::GradMode::is_enabled() && asked != nullptr &&
         asked->empty() && torch::autograd::impl::hooks(weight).empty() &&
         !torch::autograd::impl::post_acc_grad_hooks(weight);
}

// The sum is not fused with the product under autocast, whose products have fewer bits than the sum.
void add_product(const at::Tensor& left, const at::Tensor& right, at::Tensor& sum) {
  if (left.scalar_type() == sum.scalar_type() && left.size(0) == sum.size(0)) {
    sum.addmm_(left, right);
  } else {
    sum.add_(at::mm(left, right).narrow(0, 0, sum.size(0)));  // without the rows of padding
  }
}

// The layers whose number of outputs is padded, and the numbers to which it is.
constexpr std::int64_t kWide = 4096, kPadded = 64;

// Returns true if the product is several times faster with more outputs.
bool pads(at::Device device, at::ScalarType dtype, std::int64_t outputs, bool out_in) {
  return !device.is_cpu() && out_in && (dtype == at::kBFloat16 || dtype == at::kHalf) && outputs >= kWide &&
         outputs % kPadded != 0;
}

std::int64_t padded_count(std::int64_t outputs) { return (outputs + kPadded - 1) / kPadded * kPadded; }

// Returns a weight [m, ...] or a bias [m] in another dtype, followed by zeros.
at::Tensor padded(const at::Tensor& tensor, at::ScalarType dtype) {
  auto sizes = tensor.sizes().vec();
  sizes[0] = padded_count(sizes[0]);
  const at::Tensor result = at::zeros(sizes, tensor.options().dtype(dtype));
  result.narrow(0, 0, tensor.size(0)).copy_(tensor);
  return result;
}

// The product in the dtype of the input. A weight of another dtype is cast once, in the forward pass. A product that is
// faster with padding is a view of the padded one, and so may its gradient be (padded_columns.h). The padding does not
// change any result: it is multiplied by zeros in the input's gradient, and omitted from the weight's.
class Product final : public torch::autograd::Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const Bias& bias, bool out_in) {
    context->saved_data["out_in"] = out_in;
    context->saved_data["has_bias"] = bias.has_value();
    const auto dtype = input.scalar_type();
    const bool with_more = pads(input.device(), dtype, weight.size(0), out_in);
    context->saved_data["padded"] = with_more;
    const at::Tensor cast = with_more ? padded(weight, dtype) : weight.to(dtype);
    context->save_for_backward({weight.requires_grad() ? input : at::Tensor(), weight, cast});
    if (with_more) {
      const at::Tensor all = product(input, cast, bias ? Bias(padded(*bias, dtype)) : bias);
      const at::AutoDispatchBelowADInplaceOrView not_a_view;  // to autograd, which would copy its gradient
      return all.narrow(1, 0, weight.size(0));
    }
    return product(input, out_in ? cast : cast.t(), bias ? Bias(bias->to(dtype)) : bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &weight = saved[1];
    const bool out_in = context->saved_data["out_in"].toBool();
    // A second derivative is computed without padding.
    const bool with_more = context->saved_data["padded"].toBool() && !at::GradMode::is_enabled();
    const at::Tensor gradient = with_more ? with_padding(gradients[0], saved[2].size(0)) : gradients[0];
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      // A second derivative depends on the weight itself, not on its cast copy.
      const at::Tensor cast = at::GradMode::is_enabled() ? weight.to(gradient.scalar_type()) : saved[2];
      result[0] = product(gradient, out_in ? cast.t() : cast);
    }
    if (context->needs_input_grad(1)) result[1] = of_weight(rows, weight, gradient, out_in);
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) result[2] = gradients[0].sum(0);
    return result;
  }

 private:
  // Returns an undefined tensor if the gradient has been added to grad, or will be.
  static at::Tensor of_weight(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& gradient,
                              bool out_in) {
    const at::Tensor left = out_in ? gradient.t() : rows.t(), &right = out_in ? rows : gradient;
    if (!only_adds(weight)) return at::mm(left, right).narrow(0, 0, weight.size(0));
    DeferGradients::now_or_later([sum = weight.grad(), left, right]() mutable { add_product(left, right, sum); });
    return {};
  }
};

// Returns the dtype in which Product computes, or nothing if LibTorch's own layer is better or the dtype of the cast is
// unknown.
std::optional<at::ScalarType> dtype_of_product(const at::Tensor& input, const at::Tensor& weight, bool out_in) {
  const auto device = input.device().type();
  const auto given = input.scalar_type(), autocast = Autocast::current(device);
  const bool padding = pads(input.device(), autocast == at::kFloat ? given : autocast, weight.size(0), out_in);
  if (device != at::kCPU && !ExpectDeferral::any() && !padding) return {};
  const bool same_dtype = given == weight.scalar_type();
  if (given == at::kFloat && same_dtype && autocast == at::kFloat) return given;
  if (!ExpectDeferral::any() && !padding) return {};
  if (autocast == at::kFloat) return same_dtype ? std::optional(given) : std::nullopt;
  return weight.scalar_type() == at::kFloat && given != at::kDouble ? std::optional(autocast) : std::nullopt;
}

}  // namespace

at::Tensor apply_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        WeightLayout layout) {
  const bool out_in = layout == WeightLayout::kOutIn;
  const Bias with = bias.defined() ? Bias(bias) : Bias();
  const auto dtype = dtype_of_product(input, weight, out_in);
  if (!dtype) return at::linear(input, out_in ? weight : weight.t(), with);
  const std::int64_t in = weight.size(out_in ? 1 : 0), out = weight.size(out_in ? 0 : 1);
  TORCH_CHECK(input.dim() > 0 && input.size(-1) == in, "a linear layer of ", in, " inputs got ", input.sizes());
  TORCH_CHECK(!with || (with->dim() == 1 && with->numel() == out), "a linear layer of ", out, " outputs has a bias of ",
              with->sizes());
  const at::Tensor rows = input.dim() == 1 ? input.unsqueeze(0) : input.flatten(0, -2);
  const at::Tensor output = Product::apply(rows.to(*dtype), weight, with, out_in);
  if (input.dim() == 2) return output;
  auto sizes = input.sizes().vec();
  sizes.back() = out;
  return output.view(sizes);
}

}  // namespace phalanx
