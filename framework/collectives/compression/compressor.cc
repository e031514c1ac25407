#include "framework/collectives/compression/compressor.h"

#include <ATen/core/grad_mode.h>

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

Compressor::Compressor(BucketLayout layout) : layout_(std::move(layout)) {
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
  exchange(wire, tensor.detach().view({-1}));
  return wire.bytes();
}

}  // namespace phalanx
