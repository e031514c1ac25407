// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/parameter_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "engine/strategies/by_parameter.h"

namespace phalanx {

ParameterAverage::ParameterAverage(CommunicatorPtr group, Compressors::Choice compression, double weight,
                                   std::optional<Outer> outer)
    : uncompressed_(group, Compressors::Choice("none"), weight),
      steps_(std::move(group), std::move(compression), weight),
      outer_(outer) {}

void ParameterAverage::attach(const FlatParameters& parameters) {
  values_.clear(), segments_.clear(), last_.clear(), moved_.clear(), velocity_.clear();
  for (const auto& bucket : parameters.buckets()) {
    values_.push_back(bucket.values);
    segments_.push_back(bucket.segments);
    if (!measures()) continue;
    last_.push_back(bucket.values.clone());
    moved_.push_back(at::zeros_like(bucket.values));
    if (outer_) velocity_.push_back(at::zeros_like(bucket.values));
  }
  if (steps_.compresses()) steps_.attach_tensors(moved_, parameters);
}

void ParameterAverage::wait_for_all() {
  for (auto& [bucket, work] : works_) work.wait();
  works_.clear();
}

void ParameterAverage::reset() {
  const at::NoGradGuard no_grad;
  wait_for_all();
  for (std::size_t i = 0; i < last_.size(); ++i) last_[i].copy_(values_[i]);
}

void ParameterAverage::average(std::size_t first, std::size_t stride) {
  launch(first, stride);
  merge(first, stride);
}

void ParameterAverage::launch(std::size_t first, std::size_t stride) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = first; i < values_.size(); i += stride) {
    if (measures()) at::sub_out(moved_[i], values_[i], last_[i]);
    works_.emplace(i, steps_.all_reduce_mean(measures() ? moved_[i] : values_[i]));
  }
}

void ParameterAverage::merge(std::size_t first, std::size_t stride, double own) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = first; i < values_.size(); i += stride) {
    if (auto work = works_.extract(i)) work.mapped().wait();
    if (measures()) step(i, own);
  }
}

// Moves the replicas along their mean movement, starting from where they were last equal.
void ParameterAverage::step(std::size_t bucket, double own) {
  auto &last = last_[bucket], &moved = moved_[bucket];
  if (outer_) {
    velocity_[bucket].mul_(outer_->momentum).add_(moved);
    moved.add_(velocity_[bucket], outer_->momentum).mul_(outer_->lr);
  }
  last.add_(moved);
  if (own == 0) {
    values_[bucket].copy_(last);
  } else {
    values_[bucket].lerp_(last, 1 - own);
  }
}

void ParameterAverage::average(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  uncompressed_.all_reduce_mean(values).wait();
}

StateDict ParameterAverage::state() {
  wait_for_all();
  StateDict all = steps_.state();
  for (std::size_t i = 0; i < last_.size(); ++i) append_by_parameter(all, "last/", last_[i], segments_[i]);
  for (std::size_t i = 0; i < velocity_.size(); ++i) append_by_parameter(all, "velocity/", velocity_[i], segments_[i]);
  for (std::size_t i = 0; outer_ && outer_->late && i < moved_.size(); ++i) {
    append_by_parameter(all, "moved/", moved_[i], segments_[i]);
  }
  return all;
}

}  // namespace phalanx
