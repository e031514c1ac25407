// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace phalanx {
namespace {

// Returns a sum of squares. The square of a float is exact as a double, and a double can hold the sum of more of them
// than fit in memory. Pieces are converted in the cache.
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

Clip::Clip(std::unique_ptr<Optimizer> inner, ClipLimits limits, SumOverSlices sum, Parts parts, c10::Device device)
    : OptimizerDecorator(std::move(inner)),
      limits_(limits),
      sum_(std::move(sum)),
      parts_(std::move(parts)),
      device_(device),
      norm_(at::full({}, std::numeric_limits<double>::quiet_NaN(), at::device(device).dtype(at::kDouble))) {}

void Clip::attach(std::vector<Slice> slices) {
  on_device_ = {};
  std::vector<std::int64_t> parts;
  std::vector<double> shares;
  for (const auto& slice : slices) {
    if (device_.is_cpu()) break;
    const auto add = [&](const at::Tensor& gradient, std::size_t part, double share) {
      on_device_.gradients.push_back(gradient.detach());
      parts.push_back(static_cast<std::int64_t>(part));
      shares.push_back(share);
    };
    if (slice.segments.empty()) add(slice.gradients, 0, 1);
    for (const auto& segment : slice.segments) {
      if (segment.count == 0) continue;
      add(slice.gradients.narrow(0, segment.begin, segment.count), parts_.of(segment.name), parts_.share(segment.name));
    }
  }
  if (!device_.is_cpu()) {
    on_device_.parts = at::tensor(parts, at::kLong).to(device_);
    on_device_.shares = at::tensor(shares, at::kDouble).to(device_);
  }
  OptimizerDecorator::attach(std::move(slices));
}

void Clip::update() {
  clip(std::nullopt);
  inner().update();
}

void Clip::update_unless(const at::Tensor& skip) {
  clip(skip);
  inner().update_unless(skip);
}

void Clip::record(const std::optional<at::Tensor>& skip) {
  clip(skip);
  inner().record(skip);
}

void Clip::clip(const std::optional<at::Tensor>& skip) {
  if (limits_.norm > 0) clip_norm(skip);
  if (limits_.value > 0) {
    for (auto& slice : slices()) slice.gradients.clamp_(-limits_.value, limits_.value);
  }
}

void Clip::clip_norm(const std::optional<at::Tensor>& skip) {
  at::Tensor sums = sums_of_squares();
  sum_(sums);
  const at::Tensor now = sums.sum().sqrt();
  norm_.copy_(skip ? at::where(skip->to(at::kBool), norm_, now) : now);
  if (!norm_.is_cpu()) {
    const at::Tensor factor = at::where(now.isfinite(), (limits_.norm / (now + 1e-6)).clamp_max(1), 1.0);
    for (auto& slice : slices()) slice.gradients.mul_(factor);
    return;
  }
  const double factor = limits_.norm / (norm() + 1e-6);
  if (!finite() || factor >= 1) return;
  for (auto& slice : slices()) slice.gradients.mul_(factor);
}

// Padding between parameters does not count.
at::Tensor Clip::sums_of_squares() {
  const auto count = static_cast<std::int64_t>(parts_.count);
  if (on_device_.parts.defined()) {
    const at::Tensor sums = at::zeros({count}, on_device_.shares.options());
    if (on_device_.gradients.empty()) return sums;
    const at::Tensor norms = at::stack(at::_foreach_norm(on_device_.gradients, 2, at::kDouble));
    return sums.index_add_(0, on_device_.parts, norms.square().mul_(on_device_.shares));
  }
  at::Tensor sums = at::zeros({count}, at::kDouble);
  auto* const sum = sums.mutable_data_ptr<double>();
  for (const auto& slice : slices()) {
    if (slice.segments.empty()) sum[0] += sum_of_squares(slice.gradients);
    for (const auto& segment : slice.segments) {
      sum[parts_.of(segment.name)] +=
          parts_.share(segment.name) * sum_of_squares(slice.gradients.narrow(0, segment.begin, segment.count));
    }
  }
  return sums;
}

double Clip::norm() const { return norm_.item<double>(); }

void Clip::set_norm(double norm) { norm_.fill_(norm); }

bool Clip::finite() const { return limits_.norm == 0 || std::isfinite(norm()); }

}  // namespace phalanx
