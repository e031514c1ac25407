// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/slice_optimizer.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "engine/optim/fused_step.h"

namespace phalanx {

void SliceOptimizer::attach(std::vector<Slice> slices) {
  slices_ = std::move(slices);
  set_updates(0);
  excluded_.clear();
  state_.clear();
  for (const auto& kind : kinds()) {
    auto& tensors = state_.emplace_back();
    for (const auto& slice : slices_)
      tensors.push_back(at::full_like(slice.values, kind.initial, slice.values.options().requires_grad(false)));
  }
}

std::int64_t SliceOptimizer::updates() const {
  if (std::exchange(has_skips_, false)) {
    updates_ -= static_cast<std::int64_t>(skipped_.item<float>());
    skipped_.zero_();
  }
  return updates_;
}

void SliceOptimizer::set_updates(std::int64_t updates) {
  updates_ = updates;
  if (std::exchange(has_skips_, false)) skipped_.zero_();
}

void SliceOptimizer::count_unless(const at::Tensor& skip) {
  skipped_on(skip).add_(skip);
  note_skips();
}

const at::Tensor& SliceOptimizer::skipped_on(const at::Tensor& values) {
  if (!skipped_.defined()) skipped_ = at::zeros({}, at::device(values.device()).dtype(at::kFloat));
  return skipped_;
}

at::Tensor SliceOptimizer::update_on_device(const at::Tensor& values) const {
  at::Tensor update = fused_step(values, updates_);
  return has_skips_ ? update.sub_(skipped_) : update;
}

std::vector<StateTensor> SliceOptimizer::state() {
  std::vector<StateTensor> all;
  const auto names = kinds();
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    for (std::size_t slice = 0; slice < slices_.size(); ++slice)
      all.push_back({names[kind].name, slice, state_[kind][slice]});
  }
  return all;
}

SliceOptimizer::GroupRates SliceOptimizer::rates_of(std::size_t group) const {
  const auto& factors = groups_[group];
  return {learning_rate_ * factors.lr_factor, weight_decay_ * factors.weight_decay_factor, updates_};
}

}  // namespace phalanx
