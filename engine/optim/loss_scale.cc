// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/loss_scale.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Scales outside of these limits are useless: the largest fp16 gradient, 65504, times the smallest scale is below the
// smallest fp16 number, and the smallest fp16 number times the largest scale is above the largest one.
constexpr double kLeast = 0x1p-40, kMost = 0x1p40;

}  // namespace

LossScale::LossScale(std::unique_ptr<Optimizer> inner, const LossScaleConfig& config, SumOverSlices sum)
    : OptimizerDecorator(std::move(inner)), config_(config), sum_(std::move(sum)), scale_(config.initial) {
  if (config.backoff == 0 || config.backoff == 1) throw ConfigError("backoff must be above 0 and below 1");
}

std::vector<double> LossScale::progress() const {
  return {scale_, static_cast<double>(good_), static_cast<double>(skipped_updates_)};
}

void LossScale::set_progress(const std::vector<double>& progress) {
  if (progress.size() != 3) {
    throw DataError("the state of loss scaling has 3 numbers, but the checkpoint has " +
                    std::to_string(progress.size()));
  }
  scale_ = progress[0];
  good_ = static_cast<std::int64_t>(progress[1]);
  skipped_updates_ = static_cast<std::int64_t>(progress[2]);
}

void LossScale::attach(std::vector<Slice> slices) {
  set_progress({config_.initial, 0, 0});
  skipped_ = false;
  OptimizerDecorator::attach(std::move(slices));
}

void LossScale::update() {
  skipped_ = !unscale();
  if (skipped_) {
    for (auto& slice : slices()) slice.gradients.zero_();
    shrink();
    return;
  }
  inner().update();
  if (++good_ < config_.growth_interval) return;
  scale_ = std::min(scale_ * config_.growth, std::max(kMost, config_.initial));
  good_ = 0;
}

// Divides the gradients by the scale. Returns true if the gradients of all ranks are finite.
bool LossScale::unscale() {
  std::vector<at::Tensor> gradients;
  for (const auto& slice : slices()) gradients.push_back(slice.gradients);
  const auto kind = (gradients.empty() ? at::TensorOptions() : gradients.front().options()).dtype(at::kFloat);
  at::Tensor found = at::zeros({1}, kind);
  if (!gradients.empty()) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, at::full({}, 1 / scale(), kind));
  }
  at::Tensor sums = found.to(at::kCPU, at::kDouble);
  sum_(sums);
  return sums.item<double>() == 0;
}

void LossScale::shrink() {
  scale_ *= config_.backoff;
  good_ = 0;
  ++skipped_updates_;
  if (scale_ >= kLeast) return;
  throw Error("the gradients are not finite, however small the loss scale (now " + std::to_string(scale_) +
              "): look for inf or nan in the data, or lower the learning rate");
}

}  // namespace phalanx
