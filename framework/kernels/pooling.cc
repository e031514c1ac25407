// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "framework/kernels/arguments.h"
#include "framework/kernels/registrations.h"
#include "framework/kernels/vector_average_pool.h"
#include "framework/kernels/vector_max_pool.h"

namespace phalanx::kernels {
namespace {

// Returns nothing for arguments that LibTorch refuses, or for windows that may lie entirely in the padding.
std::optional<vector::Windows::Axis> axis_of(const at::Tensor& x, std::size_t axis, at::IntArrayRef kernel,
                                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                             bool ceil_mode) {
  if (!is_for_two_axes(kernel) || !(stride.empty() || is_for_two_axes(stride)) || !is_for_two_axes(padding) ||
      !is_for_two_axes(dilation)) {
    return {};
  }
  vector::Windows::Axis result{.input = x.size(x.dim() - 2 + static_cast<std::int64_t>(axis)),
                               .kernel = of_axis(kernel, axis),
                               .stride = of_axis(stride.empty() ? kernel : stride, axis),
                               .padding = of_axis(padding, axis),
                               .dilation = of_axis(dilation, axis)};
  if (result.input < 1 || result.kernel < 1 || result.stride < 1 || result.dilation < 1 || result.padding < 0 ||
      result.padding > result.kernel / 2 || (result.padding > 0 && result.dilation > 1)) {
    return {};
  }
  result.output = at::native::pooling_output_shape<std::int64_t>(result.input, result.kernel, result.padding,
                                                                 result.stride, result.dilation, ceil_mode);
  if (result.output < 1) return {};
  return result;
}

bool is_image_float(const at::Tensor& x) { return (x.dim() == 3 || x.dim() == 4) && is_contiguous_float(x); }

// Returns nothing if LibTorch's kernel must compute the pooling.
std::optional<vector::Windows> windows_of(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                                          at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  if (!is_image_float(x)) return {};
  const auto height = axis_of(x, 0, kernel, stride, padding, dilation, ceil_mode);
  const auto width = axis_of(x, 1, kernel, stride, padding, dilation, ceil_mode);
  if (!height || !width || height->input * width->input > std::numeric_limits<std::int32_t>::max() - 1) return {};
  return vector::Windows{*height, *width};
}

// Calls `pool(begin, end)` for ranges of the planes of a tensor.
template <class Pool>
void for_planes(const at::Tensor& x, const vector::Windows& windows, const Pool& pool) {
  const auto &height = windows.height, &width = windows.width;
  const auto elements = height.output * width.output * height.kernel * width.kernel;
  at::parallel_for(0, x.numel() / (height.input * width.input), std::max<std::int64_t>(1, kElementsAThread / elements),
                   pool);
}

void compute(const at::Tensor& x, const vector::Windows& windows, const at::Tensor& y, const at::Tensor& places) {
  const auto &height = windows.height, &width = windows.width;
  const std::int64_t inputs = height.input * width.input, outputs = height.output * width.output;
  const auto* const from = x.const_data_ptr<float>();
  auto* const to = y.mutable_data_ptr<float>();
  auto* const at = places.mutable_data_ptr<std::int64_t>();
  for_planes(x, windows, [&](std::int64_t begin, std::int64_t end) {
    vector::max_pool_planes(from + begin * inputs, to + begin * outputs, at + begin * outputs, end - begin, windows);
  });
}

std::vector<std::int64_t> sizes_of(const at::Tensor& x, const vector::Windows& windows) {
  auto sizes = x.sizes().vec();
  sizes[sizes.size() - 2] = windows.height.output;
  sizes.back() = windows.width.output;
  return sizes;
}

std::tuple<at::Tensor, at::Tensor> max_pool2d(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                                              at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const auto windows = windows_of(x, kernel, stride, padding, dilation, ceil_mode);
  if (!windows) return at::cpu::max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil_mode);
  const auto sizes = sizes_of(x, *windows);
  std::tuple<at::Tensor, at::Tensor> result{at::empty(sizes, x.options()),
                                            at::empty(sizes, x.options().dtype(at::kLong))};
  compute(x, *windows, std::get<0>(result), std::get<1>(result));
  return result;
}

std::tuple<at::Tensor&, at::Tensor&> max_pool2d_out(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                                                    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                                                    at::Tensor& y, at::Tensor& places) {
  const auto windows = windows_of(x, kernel, stride, padding, dilation, ceil_mode);
  const auto takes = [&](const at::Tensor& out, at::ScalarType dtype) {
    return windows && out.scalar_type() == dtype && out.is_cpu() && out.layout() == at::kStrided &&
           out.is_contiguous() && out.sizes() == sizes_of(x, *windows) && !out.is_alias_of(x);
  };
  if (!takes(y, at::kFloat) || !takes(places, at::kLong) || y.is_alias_of(places)) {
    return at::cpu::max_pool2d_with_indices_outf(x, kernel, stride, padding, dilation, ceil_mode, y, places);
  }
  compute(x, *windows, y, places);
  return {y, places};
}

using AveragePlanes = void(const float* from, float* to, std::int64_t planes, const vector::AveragePool& pool);

// Computes `to` from `from`. One of the two has the planes of `x`, and the other the planes of its averages.
void compute(AveragePlanes* function, const at::Tensor& x, const vector::AveragePool& pool, const at::Tensor& from,
             const at::Tensor& to) {
  const auto planes = x.numel() / (pool.windows.height.input * pool.windows.width.input);
  const auto elements_from = from.numel() / planes, elements_to = to.numel() / planes;
  const auto* const source = from.const_data_ptr<float>();
  auto* const target = to.mutable_data_ptr<float>();
  for_planes(x, pool.windows, [&](std::int64_t begin, std::int64_t end) {
    function(source + begin * elements_from, target + begin * elements_to, end - begin, pool);
  });
}

at::Tensor average(const at::Tensor& x, const vector::AveragePool& pool) {
  auto y = at::empty(sizes_of(x, pool.windows), x.options());
  compute(&vector::average_pool_planes, x, pool, x, y);
  return y;
}

// Returns nothing if LibTorch must compute, or refuse, the operation.
std::optional<at::Tensor> gradient_of_average(const at::Tensor& of_y, const at::Tensor& x,
                                              const vector::AveragePool& pool) {
  const auto given = of_y.contiguous();
  if (!is_image_float(given) || given.sizes() != sizes_of(x, pool.windows)) return {};
  auto of_x = at::empty_like(x);
  compute(&vector::average_pool_gradient_planes, x, pool, given, of_x);
  return of_x;
}

// Returns nothing if LibTorch's kernel must compute the pooling.
std::optional<vector::AveragePool> average_of(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                                              at::IntArrayRef padding, bool ceil_mode, bool counts_padding,
                                              std::optional<std::int64_t> divisor) {
  const auto windows = windows_of(x, kernel, stride, padding, {1}, ceil_mode);
  if (!windows || divisor == 0) return {};
  return vector::AveragePool{*windows, counts_padding, divisor.value_or(0)};
}

at::Tensor avg_pool2d(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                      bool ceil_mode, bool counts_padding, std::optional<std::int64_t> divisor) {
  const auto pool = average_of(x, kernel, stride, padding, ceil_mode, counts_padding, divisor);
  if (!pool) return at::cpu::avg_pool2d(x, kernel, stride, padding, ceil_mode, counts_padding, divisor);
  return average(x, *pool);
}

at::Tensor avg_pool2d_backward(const at::Tensor& of_y, const at::Tensor& x, at::IntArrayRef kernel,
                               at::IntArrayRef stride, at::IntArrayRef padding, bool ceil_mode, bool counts_padding,
                               std::optional<std::int64_t> divisor) {
  const auto pool = average_of(x, kernel, stride, padding, ceil_mode, counts_padding, divisor);
  if (pool) {
    if (auto of_x = gradient_of_average(of_y, x, *pool)) return *of_x;
  }
  return at::cpu::avg_pool2d_backward(of_y, x, kernel, stride, padding, ceil_mode, counts_padding, divisor);
}

// Returns the pooling if all windows are of one size and do not overlap; nothing otherwise.
std::optional<vector::AveragePool> adaptive_of(const at::Tensor& x, at::IntArrayRef sizes) {
  if (!is_image_float(x) || sizes.size() != 2) return {};
  const std::array inputs{x.size(-2), x.size(-1)};
  for (const std::size_t axis : {0, 1}) {
    if (sizes[axis] < 1 || inputs[axis] % sizes[axis] != 0) return {};
  }
  const std::array kernel{inputs[0] / sizes[0], inputs[1] / sizes[1]};
  return average_of(x, kernel, kernel, {0}, /*ceil_mode=*/false, /*counts_padding=*/true, {});
}

at::Tensor adaptive_avg_pool2d(const at::Tensor& x, at::IntArrayRef sizes) {
  const auto pool = adaptive_of(x, sizes);
  return pool ? average(x, *pool) : at::cpu::_adaptive_avg_pool2d(x, sizes);
}

at::Tensor adaptive_avg_pool2d_backward(const at::Tensor& of_y, const at::Tensor& x) {
  const auto pool = of_y.dim() == x.dim() && x.dim() >= 3 ? adaptive_of(x, of_y.sizes().slice(x.dim() - 2))
                                                          : std::optional<vector::AveragePool>();
  if (pool) {
    if (auto of_x = gradient_of_average(of_y, x, *pool)) return *of_x;
  }
  return at::cpu::_adaptive_avg_pool2d_backward(of_y, x);
}

}  // namespace

void add_pooling(torch::Library& library) {
  library.impl("max_pool2d_with_indices", TORCH_FN(max_pool2d));
  library.impl("max_pool2d_with_indices.out", TORCH_FN(max_pool2d_out));
  library.impl("avg_pool2d", TORCH_FN(avg_pool2d));
  library.impl("avg_pool2d_backward", TORCH_FN(avg_pool2d_backward));
  library.impl("_adaptive_avg_pool2d", TORCH_FN(adaptive_avg_pool2d));
  library.impl("_adaptive_avg_pool2d_backward", TORCH_FN(adaptive_avg_pool2d_backward));
}

}  // namespace phalanx::kernels
