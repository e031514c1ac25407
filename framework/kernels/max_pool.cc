#include "framework/kernels/max_pool.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "framework/kernels/vector_max_pool.h"

namespace phalanx::kernels {
namespace {

constexpr std::int64_t kElementsAThread = 1 << 14;

// Number `axis` of two, of which one number stands for both.
std::int64_t of_axis(at::IntArrayRef numbers, std::size_t axis) {
  return numbers.size() == 1 ? numbers[0] : numbers[axis];
}

// Nothing for arguments that LibTorch refuses, or windows that may lie in the padding alone.
std::optional<vector::Windows::Axis> axis_of(const at::Tensor& x, std::size_t axis, at::IntArrayRef kernel,
                                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                             bool ceil_mode) {
  const auto all_given = [](at::IntArrayRef numbers) { return numbers.size() == 1 || numbers.size() == 2; };
  if (!all_given(kernel) || !(stride.empty() || all_given(stride)) || !all_given(padding) || !all_given(dilation)) {
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

// Nothing where LibTorch's kernel is to compute.
std::optional<vector::Windows> windows_of(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                                          at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  if (x.scalar_type() != at::kFloat || x.layout() != at::kStrided || (x.dim() != 3 && x.dim() != 4) || x.numel() == 0 ||
      !x.is_contiguous() || x.suggest_memory_format() != at::MemoryFormat::Contiguous) {
    return {};
  }
  const auto height = axis_of(x, 0, kernel, stride, padding, dilation, ceil_mode);
  const auto width = axis_of(x, 1, kernel, stride, padding, dilation, ceil_mode);
  if (!height || !width || height->input * width->input > std::numeric_limits<std::int32_t>::max() - 1) return {};
  return vector::Windows{*height, *width};
}

void compute(const at::Tensor& x, const vector::Windows& windows, const at::Tensor& y, const at::Tensor& places) {
  const auto &height = windows.height, &width = windows.width;
  const std::int64_t inputs = height.input * width.input, outputs = height.output * width.output;
  const auto* const from = x.const_data_ptr<float>();
  auto* const to = y.mutable_data_ptr<float>();
  auto* const at = places.mutable_data_ptr<std::int64_t>();
  const std::int64_t grain = std::max<std::int64_t>(1, kElementsAThread / (outputs * height.kernel * width.kernel));
  at::parallel_for(0, x.numel() / inputs, grain, [&](std::int64_t begin, std::int64_t end) {
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

}  // namespace

void add_max_pool(torch::Library& library) {
  library.impl("max_pool2d_with_indices", TORCH_FN(max_pool2d));
  library.impl("max_pool2d_with_indices.out", TORCH_FN(max_pool2d_out));
}

}  // namespace phalanx::kernels
