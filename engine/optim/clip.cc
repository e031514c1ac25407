#include "engine/optim/clip.h"

#include <ATen/ops/dot.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace phalanx {
namespace {

// The square of a float is exact as a double, which also holds the sum of more of them than memory does. A piece is
// converted in the cache.
double sum_of_squares(const at::Tensor& values) {
  constexpr std::int64_t kPiece = 16384;
  double sum = 0;
  for (std::int64_t begin = 0; begin < values.numel(); begin += kPiece) {
    const auto piece = values.narrow(0, begin, std::min(kPiece, values.numel() - begin)).to(at::kDouble);
    sum += at::dot(piece, piece).item<double>();
  }
  return sum;
}

}  // namespace

Clip::Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum, ShareOf share_of)
    : OptimizerDecorator(std::move(inner)), limits_(limits), sum_(std::move(sum)), share_of_(std::move(share_of)) {}

void Clip::update() {
  if (limits_.norm > 0) {
    norm_ = global_norm();
    finite_ = std::isfinite(norm_);
    const double factor = limits_.norm / (norm_ + 1e-6);
    if (finite_ && factor < 1) {
      for (auto& slice : slices()) slice.gradients.mul_(factor);
    }
  }
  if (limits_.value > 0) {
    for (auto& slice : slices()) slice.gradients.clamp_(-limits_.value, limits_.value);
  }
  inner().update();
}

// What lies between parameters does not count.
double Clip::global_norm() {
  double sum = 0;
  for (const auto& slice : slices()) {
    if (slice.segments.empty()) sum += sum_of_squares(slice.gradients);
    for (const auto& segment : slice.segments) {
      sum += share_of_(segment.name) * sum_of_squares(slice.gradients.narrow(0, segment.begin, segment.count));
    }
  }
  at::Tensor sums = at::scalar_tensor(sum, at::kDouble).view({1});
  sum_(sums);
  return std::sqrt(sums.item<double>());
}

}  // namespace phalanx
