// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/ema.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx {

Ema::Ema(std::unique_ptr<Optimizer> inner, double decay, Share share)
    : OptimizerDecorator(std::move(inner)), decay_(decay), share_(std::move(share)) {
  if (!(decay >= 0 && decay < 1)) throw std::invalid_argument("the decay of an average must be at least 0 and below 1");
}

void Ema::attach(std::vector<Slice> slices) {
  averages_.clear();
  for (const auto& slice : slices) averages_.push_back(slice.values.detach().clone());
  OptimizerDecorator::attach(std::move(slices));
}

void Ema::update() {
  const auto before = updates();
  inner().update();
  if (updates() == before) return;
  const at::NoGradGuard no_grad;
  const auto t = static_cast<double>(updates());
  const double decay = std::min(decay_, (1 + t) / (10 + t));
  for (std::size_t i = 0; i < averages_.size(); ++i) averages_[i].lerp_(slices()[i].values, 1 - decay);
}

std::vector<StateTensor> Ema::state() {
  auto all = inner().state();
  for (std::size_t i = 0; i < averages_.size(); ++i) all.push_back({kMovingAverage, i, averages_[i]});
  return all;
}

void Ema::with_averages(const std::function<void()>& body) {
  exchange();
  try {
    share_();
    body();
    share_();  // ranks may share memory: no rank may take the averages away while another one reads them
  } catch (...) {
    exchange();  // a run that goes on after the error (faults.on_lost_rank) carries the values
    throw;
  }
  exchange();
  share_();
}

// Exchanges elements instead of tensors, because parameters are views of the slices.
void Ema::exchange() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor values = slices()[i].values.clone();
    slices()[i].values.copy_(averages_[i]);
    averages_[i].copy_(values);
  }
}

}  // namespace phalanx
