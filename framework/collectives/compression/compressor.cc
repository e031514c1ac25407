// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/compressor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const auto size : shape) elements *= size;
  return elements;
}

}  // namespace

Compressor::Compressor(BucketLayout layout, std::int64_t start_after)
    : layout_(std::move(layout)), start_after_(start_after), steps_(at::zeros({1}, at::kLong)) {
  if (layout_.shapes.empty()) return;
  std::int64_t elements = 0;
  for (const auto& shape : layout_.shapes) elements += elements_of(shape);
  if (elements != layout_.elements) {
    throw std::invalid_argument("compression: a bucket of " + std::to_string(layout_.elements) +
                                " elements, but its parameters have " + std::to_string(elements));
  }
}

std::int64_t Compressor::all_reduce_mean(Communicator& group, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (tensor.scalar_type() != at::kFloat || !tensor.is_contiguous() || tensor.numel() != layout_.elements) {
    throw std::invalid_argument("compression: expected " + std::to_string(layout_.elements) +
                                " contiguous elements of Float, got " + std::to_string(tensor.numel()) +
                                (tensor.is_contiguous() ? " of " : " not contiguous ones of ") +
                                c10::toString(tensor.scalar_type()));
  }
  if (group.size() == 1 || layout_.elements == 0) return 0;
  Wire wire(group);
  const at::Tensor flat = tensor.detach().view({-1});
  auto& step = *steps_.mutable_data_ptr<std::int64_t>();
  step < start_after_ ? wire.all_reduce(flat, Reduction::kMean) : exchange(wire, flat);
  ++step;
  return wire.bytes();
}

}  // namespace phalanx
