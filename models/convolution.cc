// SPDX-License-Identifier: Apache-2.0
#include "models/convolution.h"

#include <ATen/ops/conv2d.h>

#include <string>
#include <utility>
#include <variant>

#include "framework/base/error.h"
#include "framework/parallel/autograd_collectives.h"
#include "models/batch_norm.h"

namespace phalanx {

namespace {

constexpr std::int64_t kChannels = 1;  // dimension of [n, channels, h, w]

}  // namespace

Placements Conv2dImpl::shard(TensorStyle style, const CommunicatorPtr& group) {
  if (style == TensorStyle::kVocabulary) throw ConfigError("is a convolution, which cannot be divided by vocabulary");
  if (options.groups() != 1) {
    throw ConfigError("is a convolution of " + std::to_string(options.groups()) + " groups, which cannot be divided");
  }
  style_ = style;
  group_ = group;
  auto sharded = shard_weights(style, group, weight, bias, /*out=*/0);
  sizes_ = std::move(sharded.sizes);
  return std::move(sharded.placements);
}

at::Tensor Conv2dImpl::forward(const at::Tensor& input) {
  if (!group_) return torch::nn::Conv2dImpl::forward(input);
  if (style_ == TensorStyle::kRow) {
    const at::Tensor sum = sum_over_ranks(convolve(input, {}), group_);
    return bias.defined() ? sum + bias.view({-1, 1, 1}) : sum;
  }
  const at::Tensor output = convolve(copy_to_ranks(input, group_), bias);
  return style_ == TensorStyle::kColumn ? output : gather_parts(output, kChannels, group_, sizes_);
}

at::Tensor Conv2dImpl::convolve(const at::Tensor& input, const at::Tensor& bias) const {
  const auto& padding = std::get<torch::ExpandingArray<2>>(options.padding());
  return at::conv2d(input, weight, bias, *options.stride(), *padding, *options.dilation());
}

Conv2d convolution(const Convolution& shape) {
  return Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                    .stride(shape.stride)
                    .padding(shape.kernel / 2)
                    .groups(shape.groups)
                    .bias(shape.bias));
}

std::shared_ptr<Sequence> conv_norm(const Convolution& shape, Sequence::Function activation, NormOptions norm) {
  auto sequence = std::make_shared<Sequence>();
  sequence->add(convolution(shape));
  sequence->add(BatchNorm2d(torch::nn::BatchNorm2dOptions(shape.out).eps(norm.eps).momentum(norm.momentum)));
  if (activation) sequence->add_function(std::move(activation));
  return sequence;
}

}  // namespace phalanx
