// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_backward_cpu_dispatch.h>
#include <ATen/ops/gelu_cpu_dispatch.h>
#include <ATen/ops/sigmoid_cpu_dispatch.h>
#include <ATen/ops/silu_backward_cpu_dispatch.h>
#include <ATen/ops/silu_cpu_dispatch.h>
#include <ATen/ops/tanh_cpu_dispatch.h>

#include <cstdint>
#include <string_view>

#include "framework/kernels/arguments.h"
#include "framework/kernels/registrations.h"
#include "framework/kernels/vector_activations.h"

namespace phalanx::kernels {
namespace {

using Unary = void(const float* x, float* y, std::int64_t count);
using Gradient = void(const float* gradient, const float* x, float* result, std::int64_t count);

// Returns true if the elements of a tensor are float32 numbers that fill one block of memory.
bool is_dense_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.layout() == at::kStrided && x.is_cpu() && x.is_non_overlapping_and_dense();
}

// Returns true if the elements of two tensors lie in the same order.
bool lie_alike(const at::Tensor& one, const at::Tensor& two) {
  return one.sizes() == two.sizes() && one.strides() == two.strides();
}

// Returns true if `out` can take the result of an elementwise function of `x`: it is `x` itself, or shares no memory.
bool takes_result(const at::Tensor& x, const at::Tensor& out) {
  return is_dense_float(out) && lie_alike(x, out) &&
         (out.const_data_ptr() == x.const_data_ptr() || !out.is_alias_of(x));
}

void compute(Unary* function, const at::Tensor& x, const at::Tensor& y) {
  const auto* const from = x.const_data_ptr<float>();
  auto* const to = y.mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), kElementsAThread,
                   [&](std::int64_t begin, std::int64_t end) { function(from + begin, to + begin, end - begin); });
}

void compute(Gradient* function, const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& result) {
  const auto* const of_output = gradient.const_data_ptr<float>();
  const auto* const from = x.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, x.numel(), kElementsAThread, [&](std::int64_t begin, std::int64_t end) {
    function(of_output + begin, from + begin, to + begin, end - begin);
  });
}

// A function in LibTorch's three forms: functional, into given memory, in place. `Theirs` has LibTorch's kernels.
template <Unary* ours, class Theirs>
struct Activation {
  static at::Tensor functional(const at::Tensor& x) {
    if (!is_dense_float(x)) return Theirs::functional(x);
    at::Tensor y = at::empty_like(x);
    compute(ours, x, y);
    return y;
  }

  static at::Tensor& out(const at::Tensor& x, at::Tensor& y) {
    if (!is_dense_float(x) || !takes_result(x, y)) return Theirs::out(x, y);
    compute(ours, x, y);
    return y;
  }

  static at::Tensor& in_place(at::Tensor& x) {
    if (!is_dense_float(x)) return Theirs::in_place(x);
    compute(ours, x, x);
    return x;
  }
};

struct LibTorchTanh {
  static at::Tensor functional(const at::Tensor& x) { return at::cpu::tanh(x); }
  static at::Tensor& out(const at::Tensor& x, at::Tensor& y) { return at::cpu::tanh_outf(x, y); }
  static at::Tensor& in_place(at::Tensor& x) { return at::cpu::tanh_(x); }
};

struct LibTorchSigmoid {
  static at::Tensor functional(const at::Tensor& x) { return at::cpu::sigmoid(x); }
  static at::Tensor& out(const at::Tensor& x, at::Tensor& y) { return at::cpu::sigmoid_outf(x, y); }
  static at::Tensor& in_place(at::Tensor& x) { return at::cpu::sigmoid_(x); }
};

struct LibTorchSilu {
  static at::Tensor functional(const at::Tensor& x) { return at::cpu::silu(x); }
  static at::Tensor& out(const at::Tensor& x, at::Tensor& y) { return at::cpu::silu_outf(x, y); }
  static at::Tensor& in_place(at::Tensor& x) { return at::cpu::silu_(x); }
};

// Returns null for an approximation that LibTorch refuses.
Unary* gelu_of(std::string_view approximation) {
  return approximation == "none" ? &vector::gelu : approximation == "tanh" ? &vector::gelu_tanh : nullptr;
}

Gradient* gelu_gradient_of(std::string_view approximation) {
  return approximation == "none"   ? &vector::gelu_gradient
         : approximation == "tanh" ? &vector::gelu_tanh_gradient
                                   : nullptr;
}

at::Tensor gelu(const at::Tensor& x, std::string_view approximation) {
  auto* const ours = gelu_of(approximation);
  if (ours == nullptr || !is_dense_float(x)) return at::cpu::gelu(x, approximation);
  at::Tensor y = at::empty_like(x);
  compute(ours, x, y);
  return y;
}

at::Tensor& gelu_out(const at::Tensor& x, std::string_view approximation, at::Tensor& y) {
  auto* const ours = gelu_of(approximation);
  if (ours == nullptr || !is_dense_float(x) || !takes_result(x, y)) return at::cpu::gelu_outf(x, approximation, y);
  compute(ours, x, y);
  return y;
}

at::Tensor& gelu_in_place(at::Tensor& x, std::string_view approximation) { return gelu_out(x, approximation, x); }

bool take_gradient(const at::Tensor& gradient, const at::Tensor& x) {
  return is_dense_float(gradient) && is_dense_float(x) && lie_alike(gradient, x);
}

bool take_gradient(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& result) {
  return take_gradient(gradient, x) && takes_result(gradient, result) && takes_result(x, result);
}

at::Tensor gelu_backward(const at::Tensor& gradient, const at::Tensor& x, std::string_view approximation) {
  auto* const ours = gelu_gradient_of(approximation);
  if (ours == nullptr || !take_gradient(gradient, x)) return at::cpu::gelu_backward(gradient, x, approximation);
  at::Tensor result = at::empty_like(x);
  compute(ours, gradient, x, result);
  return result;
}

at::Tensor& gelu_backward_out(const at::Tensor& gradient, const at::Tensor& x, std::string_view approximation,
                              at::Tensor& result) {
  auto* const ours = gelu_gradient_of(approximation);
  if (ours == nullptr || !take_gradient(gradient, x, result)) {
    return at::cpu::gelu_backward_outf(gradient, x, approximation, result);
  }
  compute(ours, gradient, x, result);
  return result;
}

at::Tensor silu_backward(const at::Tensor& gradient, const at::Tensor& x) {
  if (!take_gradient(gradient, x)) return at::cpu::silu_backward(gradient, x);
  at::Tensor result = at::empty_like(x);
  compute(&vector::silu_gradient, gradient, x, result);
  return result;
}

at::Tensor& silu_backward_out(const at::Tensor& gradient, const at::Tensor& x, at::Tensor& result) {
  if (!take_gradient(gradient, x, result)) return at::cpu::silu_backward_outf(gradient, x, result);
  compute(&vector::silu_gradient, gradient, x, result);
  return result;
}

}  // namespace

bool replaces_tanh() { return !at::hasMKL() || at::get_cpu_capability() != "AVX512"; }

void add_activations(torch::Library& library) {
  if (replaces_tanh()) {
    using Tanh = Activation<&vector::tanh, LibTorchTanh>;
    library.impl("tanh", TORCH_FN(Tanh::functional));
    library.impl("tanh.out", TORCH_FN(Tanh::out));
    library.impl("tanh_", TORCH_FN(Tanh::in_place));
  }
  using Sigmoid = Activation<&vector::sigmoid, LibTorchSigmoid>;
  library.impl("sigmoid", TORCH_FN(Sigmoid::functional));
  library.impl("sigmoid.out", TORCH_FN(Sigmoid::out));
  library.impl("sigmoid_", TORCH_FN(Sigmoid::in_place));
  using Silu = Activation<&vector::silu, LibTorchSilu>;
  library.impl("silu", TORCH_FN(Silu::functional));
  library.impl("silu.out", TORCH_FN(Silu::out));
  library.impl("silu_", TORCH_FN(Silu::in_place));
  library.impl("silu_backward", TORCH_FN(silu_backward));
  library.impl("silu_backward.grad_input", TORCH_FN(silu_backward_out));
  library.impl("gelu", TORCH_FN(gelu));
  library.impl("gelu.out", TORCH_FN(gelu_out));
  library.impl("gelu_", TORCH_FN(gelu_in_place));
  library.impl("gelu_backward", TORCH_FN(gelu_backward));
  library.impl("gelu_backward.grad_input", TORCH_FN(gelu_backward_out));
}

}  // namespace phalanx::kernels
