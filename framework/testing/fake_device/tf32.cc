// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/tf32.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace phalanx::testing {

bool rounds_to_tf32(std::string_view operator_name) {
  constexpr std::array<std::string_view, 4> kProducts{"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"};
  const at::Context& context = at::globalContext();
  if (std::ranges::find(kProducts, operator_name) != kProducts.end()) return context.allowTF32CuBLAS();
  const bool of_cudnn =
      operator_name.find("conv") != std::string_view::npos || operator_name.find("lstm_cell") != std::string_view::npos;
  return of_cudnn && context.allowTF32CuDNN();
}

at::Tensor rounded_to_tf32(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() != at::kFloat) return tensor;
  at::Tensor rounded = tensor.clone();  // dense, in whatever order
  for (float& value : std::span(rounded.mutable_data_ptr<float>(), static_cast<std::size_t>(rounded.numel()))) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool finite = (bits & 0x7f800000U) != 0x7f800000U;
    if (finite) value = std::bit_cast<float>((bits + 0x0fffU + ((bits >> 13) & 1U)) & ~0x1fffU);
  }
  return rounded;
}

}  // namespace phalanx::testing
