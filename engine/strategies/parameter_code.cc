// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/parameter_code.h"

#include <ATen/ops/zeros.h>

#include <span>
#include <stdexcept>

#include "framework/base/error.h"
#include "framework/collectives/compression/int8_code.h"

namespace phalanx {
namespace {

constexpr std::int64_t kBlock = 256;  // the default of compression int8

std::span<float> elements_of(const at::Tensor& values) {
  return {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())};
}

}  // namespace

std::vector<std::string> ParameterCode::names() { return {"none", "bf16", "fp16", "int8"}; }

ParameterCode::ParameterCode(const std::string& name) {
  if (name == "none") {
    exact_ = true;
  } else if (name == "bf16") {
    dtype_ = at::kBFloat16;
  } else if (name == "fp16") {
    dtype_ = at::kHalf;
  } else if (name == "int8") {
    code_ = make_int8_code(kBlock);
  } else {
    throw std::invalid_argument("unknown code of parameters \"" + name + "\"");
  }
}

at::Tensor ParameterCode::make_message(const at::Tensor& values) const {
  if (!code_) return at::zeros(values.sizes(), values.options().dtype(exact_ ? values.scalar_type() : dtype_));
  if (values.scalar_type() != at::kFloat) {
    throw ConfigError(std::string("strategy.compression: int8 is for parameters of Float, not of ") +
                      c10::toString(values.scalar_type()) + "; use compression: none");
  }
  return at::zeros({code_->bytes(values.numel())}, at::kByte);
}

void ParameterCode::write(const at::Tensor& values, const at::Tensor& message) const {
  if (!code_) {
    message.copy_(values);
    return;
  }
  const at::Tensor rest = values.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  code_->encode(elements_of(rest), message.mutable_data_ptr<std::uint8_t>());
}

at::Tensor ParameterCode::read(const at::Tensor& message, const at::Tensor& like) const {
  if (!code_) return message.to(like.scalar_type());
  const at::Tensor values = at::zeros({like.numel()}, at::kFloat);
  code_->add(message.const_data_ptr<std::uint8_t>(), 1, elements_of(values));
  return values.to(like.device());
}

}  // namespace phalanx
