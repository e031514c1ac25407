// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_convolution_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/convolution_backward_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "framework/kernels/arguments.h"
#include "framework/kernels/registrations.h"
#include "framework/kernels/vector_convolution.h"

namespace phalanx::kernels {
namespace {

using vector::Convolution;
using vector::Windows;

constexpr std::int64_t kOperationsAThread = 1 << 18;
constexpr std::int64_t kOperationsAChunk = 1 << 22;

struct Arguments {
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  bool transposed;
  std::int64_t groups;
};

bool is_image_batch(const at::Tensor& x) { return x.dim() == 4 && is_contiguous_float(x); }

// Returns nothing for arguments that LibTorch refuses, and for strides other than 1.
std::optional<Windows::Axis> axis_of(const at::Tensor& x, const at::Tensor& weight, const Arguments& arguments,
                                     std::size_t axis) {
  const auto i = static_cast<std::int64_t>(axis) + 2;
  Windows::Axis result{.input = x.size(i),
                       .kernel = weight.size(i),
                       .stride = of_axis(arguments.stride, axis),
                       .padding = of_axis(arguments.padding, axis),
                       .dilation = of_axis(arguments.dilation, axis)};
  if (result.stride != 1 || result.padding < 0 || result.dilation < 1) return {};
  if (result.padding > (result.kernel - 1) * result.dilation) return {};  // outputs that see only padding
  result.output = result.input + 2 * result.padding - (result.kernel - 1) * result.dilation;
  if (result.output < 1) return {};
  return result;
}

// Returns the convolution, or nothing if LibTorch must compute it.
std::optional<Convolution> convolution_of(const at::Tensor& x, const at::Tensor& weight, const Arguments& arguments) {
  if (!is_image_batch(x) || !is_image_batch(weight) || arguments.transposed || arguments.groups != 1 ||
      !is_for_two_axes(arguments.stride) || !is_for_two_axes(arguments.padding) ||
      !is_for_two_axes(arguments.dilation) || x.size(1) != weight.size(1)) {
    return {};
  }
  const auto height = axis_of(x, weight, arguments, 0), width = axis_of(x, weight, arguments, 1);
  if (!height || !width || height->kernel * width->kernel == 1) return {};
  return Convolution{.inputs = x.size(1), .outputs = weight.size(0), .windows = {*height, *width}};
}

bool all_finite(const at::Tensor& x) {
  const auto* const values = x.const_data_ptr<float>();
  float zero = 0;  // the sum of products with 0 is NaN if there is an infinity
  for (std::int64_t i = 0; i < x.numel(); ++i) zero += values[i] * 0.0F;
  return zero == 0;
}

// Decides which convolutions gain, as measured with tools/bench_kernels: LibTorch's code is slow for few input
// channels. AVX-512 has more registers for our code.
bool has_many_registers() {
  static const bool many = at::get_cpu_capability() == "AVX512";
  return many;
}

bool is_faster(const Convolution& c) { return c.inputs <= 3; }

bool is_faster_to_input(const Convolution& c) { return c.inputs <= (has_many_registers() ? 8 : 4); }

bool is_faster_to_weight(const Convolution& c) {
  return c.inputs == 1 || (has_many_registers() && c.inputs >= 5 && c.inputs <= 8);
}

std::int64_t operations(const Convolution& c) { return c.taps() * c.output_size(); }

void convolve_images(const float* x, const float* weights, const float* bias, float* y, std::int64_t images,
                     const Convolution& c) {
  const auto grain = std::max<std::int64_t>(1, kOperationsAThread / operations(c));
  at::parallel_for(0, images, grain, [&](std::int64_t begin, std::int64_t end) {
    vector::convolve(x + begin * c.input_size(), weights, bias, y + begin * c.output_size(), end - begin, c);
  });
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, std::int64_t groups, bool benchmark, bool deterministic,
                       bool cudnn_enabled, bool allow_tf32) {
  const auto c = convolution_of(x, weight, {stride, padding, dilation, transposed, groups});
  const bool has_bias = bias && bias->defined();
  const bool takes_bias = !has_bias || (bias->scalar_type() == at::kFloat && bias->is_contiguous() &&
                                        bias->dim() == 1 && bias->size(0) == weight.size(0));
  if (!c || !is_faster(*c) || !takes_bias || !all_finite(weight)) {
    return at::compositeexplicitautograd::_convolution(x, weight, bias, stride, padding, dilation, transposed,
                                                       output_padding, groups, benchmark, deterministic, cudnn_enabled,
                                                       allow_tf32);
  }
  auto y = at::empty({x.size(0), c->outputs, c->windows.height.output, c->windows.width.output}, x.options());
  convolve_images(x.const_data_ptr<float>(), weight.const_data_ptr<float>(),
                  has_bias ? bias->const_data_ptr<float>() : nullptr, y.mutable_data_ptr<float>(), x.size(0), *c);
  return y;
}

// Returns the convolution that computes the gradient of the input from the gradient of the output.
Convolution to_input(const Convolution& c) {
  const auto reverse = [](const Windows::Axis& axis) {
    return Windows::Axis{.input = axis.output,
                         .output = axis.input,
                         .kernel = axis.kernel,
                         .stride = 1,
                         .padding = (axis.kernel - 1) * axis.dilation - axis.padding,
                         .dilation = axis.dilation};
  };
  return {.inputs = c.outputs, .outputs = c.inputs, .windows = {reverse(c.windows.height), reverse(c.windows.width)}};
}

// Returns weights [outputs, inputs, height, width] as [inputs, outputs, height, width], with both axes of the window
// reversed.
std::vector<float> reversed(const at::Tensor& weight) {
  const auto outputs = weight.size(0), inputs = weight.size(1), window = weight.size(2) * weight.size(3);
  const auto* const from = weight.const_data_ptr<float>();
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(weight.numel()));
  for (std::int64_t input = 0; input < inputs; ++input) {
    for (std::int64_t output = 0; output < outputs; ++output) {
      for (std::int64_t i = window - 1; i >= 0; --i) result.push_back(from[(output * inputs + input) * window + i]);
    }
  }
  return result;
}

at::Tensor gradient_of_input(const at::Tensor& of_y, const at::Tensor& x, const at::Tensor& weight,
                             const Convolution& c) {
  auto of_x = at::empty_like(x);
  convolve_images(of_y.const_data_ptr<float>(), reversed(weight).data(), nullptr, of_x.mutable_data_ptr<float>(),
                  x.size(0), to_input(c));
  return of_x;
}

// Images are added in chunks whose size follows only from the shape, so that the order of the sum is fixed.
at::Tensor gradient_of_weight(const at::Tensor& of_y, const at::Tensor& x, const at::Tensor& weight,
                              const Convolution& c) {
  const auto images = x.size(0);
  const auto chunk = std::clamp<std::int64_t>(kOperationsAChunk / operations(c), 1, images);
  const auto chunks = (images + chunk - 1) / chunk;
  const auto sums = at::empty({chunks, weight.numel()}, weight.options());
  const auto* const from = x.const_data_ptr<float>();
  const auto* const gradients = of_y.const_data_ptr<float>();
  auto* const to = sums.mutable_data_ptr<float>();
  at::parallel_for(0, chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto first = i * chunk;
      vector::convolution_gradient(from + first * c.input_size(), gradients + first * c.output_size(),
                                   to + i * weight.numel(), std::min(chunk, images - first), c);
    }
  });
  return sums.sum(0).view(weight.sizes());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& of_y, const at::Tensor& x, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> wanted) {
  const auto theirs = [&](std::array<bool, 3> which) {
    return at::compositeexplicitautograd::convolution_backward(of_y, x, weight, bias_sizes, stride, padding, dilation,
                                                               transposed, output_padding, groups, which);
  };
  const auto c = convolution_of(x, weight, {stride, padding, dilation, transposed, groups});
  if (!c) return theirs(wanted);
  const auto gradients = of_y.contiguous();
  if (!is_image_batch(gradients)) return theirs(wanted);
  at::Tensor of_x;
  at::Tensor of_weight, of_bias;
  auto left = wanted;
  if (wanted[0] && is_faster_to_input(*c) && all_finite(weight)) {
    of_x = gradient_of_input(gradients, x, weight, *c);
    left[0] = false;
  }
  if (wanted[1] && is_faster_to_weight(*c)) {
    of_weight = gradient_of_weight(gradients, x, weight, *c);
    left[1] = !all_finite(of_weight);  // infinities times the zeros of the padding are NaN; LibTorch skips the padding
  }
  if (wanted[2] && !left[1]) {
    of_bias = gradients.sum({0, 2, 3});
    left[2] = false;
  }
  if (left[0] || left[1] || left[2]) {
    auto [theirs_x, theirs_weight, theirs_bias] = theirs(left);
    if (left[0]) of_x = theirs_x;
    if (left[1]) of_weight = theirs_weight;
    if (left[2]) of_bias = theirs_bias;
  }
  return {of_x, of_weight, of_bias};
}

}  // namespace

void add_convolution(torch::Library& library) {
  library.impl("_convolution", TORCH_FN(convolution));
  library.impl("convolution_backward", TORCH_FN(convolution_backward));
}

}  // namespace phalanx::kernels
