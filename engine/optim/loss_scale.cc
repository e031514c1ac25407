// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/loss_scale.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
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

// On a device, the scale is checked once in this many updates; by then the copy that was requested at the check before
// has arrived.
constexpr std::int64_t kCheckEvery = 64;

void refuse_if_useless(double scale) {
  if (scale >= kLeast) return;
  throw Error("the gradients are not finite, however small the loss scale (now " + std::to_string(scale) +
              "): look for inf or nan in the data, or lower the learning rate");
}

}  // namespace

LossScale::LossScale(std::unique_ptr<Optimizer> inner, const LossScaleConfig& config, LargestOfRanks largest,
                     c10::Device device)
    : OptimizerDecorator(std::move(inner)), config_(config), largest_(std::move(largest)), device_(device) {
  if (config.backoff == 0 || config.backoff == 1) throw ConfigError("backoff must be above 0 and below 1");
  const auto number = [&](at::ScalarType dtype) { return at::zeros({}, at::device(device).dtype(dtype)); };
  scale_ = number(at::kFloat).fill_(config.initial);
  skip_ = number(at::kFloat);
  skipped_ = number(at::kDouble);
  good_ = number(at::kInt);
}

double LossScale::scale() const { return scale_.item<float>(); }
bool LossScale::skipped() const { return skip_.item<float>() != 0; }
std::int64_t LossScale::skipped_updates() const { return static_cast<std::int64_t>(skipped_.item<double>()); }

std::vector<double> LossScale::progress() const {
  return {scale(), static_cast<double>(good_.item<int>()), skipped_.item<double>()};
}

void LossScale::set_progress(const std::vector<double>& progress) {
  if (progress.size() != 3) {
    throw DataError("the state of loss scaling has 3 numbers, but the checkpoint has " +
                    std::to_string(progress.size()));
  }
  scale_.fill_(progress[0]);
  // _amp_update_scale_() increases the scale only when the number of updates equals the interval.
  good_.fill_(std::min(progress[1], static_cast<double>(config_.growth_interval - 1)));
  skipped_.fill_(progress[2]);
}

void LossScale::attach(std::vector<Slice> slices) {
  set_progress({config_.initial, 0, 0});
  skip_.zero_();
  delayed_scale_ = {};
  unchecked_ = 0;
  OptimizerDecorator::attach(std::move(slices));
}

void LossScale::update() {
  const bool waits = device_.is_cpu() || !inner().can_skip_on_device();
  unscale();
  if (waits) {
    update_inner();
  } else {
    inner().update_unless(skip_);
  }
  adapt();
  check(waits);
}

void LossScale::record(const std::optional<at::Tensor>&) {
  unscale();
  inner().record(skip_);
  adapt();
}

void LossScale::replayed() {
  inner().replayed();
  check(/*waits=*/false);
}

// Divides the gradients by the scale, and sets skip_ to 1 if a rank's gradients are not finite.
void LossScale::unscale() {
  std::vector<at::Tensor> gradients;
  for (const auto& slice : slices()) gradients.push_back(slice.gradients);
  skip_.zero_();
  if (!gradients.empty()) {
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, skip_,
                                                   scale_.to(at::kDouble).reciprocal_().to(at::kFloat));
  }
  at::Tensor of_ranks = skip_.view({1});
  largest_(of_ranks);
}

void LossScale::update_inner() {
  if (!skipped()) return inner().update();
  for (auto& slice : slices()) slice.gradients.zero_();
}

void LossScale::adapt() {
  skipped_.add_(skip_);
  at::_amp_update_scale_(scale_, good_, skip_, config_.growth, config_.backoff, config_.growth_interval);
  scale_.clamp_max_(std::max(kMost, config_.initial));
}

void LossScale::check(bool waits) {
  if (waits) return refuse_if_useless(scale());
  if (++unchecked_ < kCheckEvery) return;
  unchecked_ = 0;
  if (const auto scale = delayed_scale_.read()) refuse_if_useless(*scale);
  delayed_scale_.request(scale_);
}

}  // namespace phalanx
