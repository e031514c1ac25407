// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/gradient_views.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

bool is_same_memory(const at::Tensor& grad, const at::Tensor& view) {
  return grad.layout() == at::kStrided && grad.const_data_ptr() == view.const_data_ptr() &&
         grad.strides() == view.strides();
}

}  // namespace

GradientViews::GradientViews(const FlatParameters& parameters) : buckets_(parameters.buckets()) {
  for (const auto& bucket : buckets_) {
    auto& entries = entries_.emplace_back();
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
      Entry entry{.parameter = bucket.parameters[i],
                  .gradient = view_of(bucket.gradients, bucket.segments[i]).variable_data(),
                  .values = bucket.parameters[i].const_data_ptr()};
      entry.parameter.mutable_grad() = entry.gradient;
      entries.push_back(std::move(entry));
    }
  }
}

bool GradientViews::take(Entry& entry) {
  at::Tensor& grad = entry.parameter.mutable_grad();
  if (!grad.defined()) return false;
  if (is_same_memory(grad, entry.gradient)) return true;
  entry.gradient.copy_(grad.layout() == at::kStrided ? grad.detach() : grad.to_dense());
  grad = entry.gradient;
  return true;
}

void GradientViews::take(std::size_t bucket, std::size_t parameter) {
  const at::NoGradGuard no_grad;
  take(entries_[bucket][parameter]);
}

void GradientViews::take_all() {
  const at::NoGradGuard no_grad;
  for (auto& entries : entries_) {
    for (auto& entry : entries) {
      entry.had_none = !take(entry);
      if (!entry.had_none) continue;
      entry.gradient.zero_();
      entry.parameter.mutable_grad() = entry.gradient;
    }
  }
}

void GradientViews::give_back(const std::set<std::string>& names) {
  if (names.empty()) return;
  for (std::size_t bucket = 0; bucket < entries_.size(); ++bucket) {
    for (std::size_t i = 0; i < entries_[bucket].size(); ++i) {
      auto& entry = entries_[bucket][i];
      if (entry.had_none && names.contains(buckets_[bucket].segments[i].name)) entry.parameter.mutable_grad().reset();
    }
  }
}

void GradientViews::zero() {
  const at::NoGradGuard no_grad;
  for (const auto& bucket : buckets_) at::Tensor(bucket.gradients).zero_();
  for (auto& entries : entries_) {
    for (auto& entry : entries) entry.parameter.mutable_grad() = entry.gradient;
  }
}

void GradientViews::require_values_in_buckets() const {
  for (std::size_t bucket = 0; bucket < entries_.size(); ++bucket) {
    for (std::size_t i = 0; i < entries_[bucket].size(); ++i) {
      const auto& entry = entries_[bucket][i];
      if (entry.parameter.const_data_ptr() == entry.values) continue;
      throw Error("DistributedDataParallel: parameter " + buckets_[bucket].segments[i].name +
                  " has been given other memory; load values with phalanx::load(), and move the module to its device "
                  "or dtype before this object is made");
    }
  }
}

}  // namespace phalanx
