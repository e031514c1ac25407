#include "engine/sync/parameter_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sub.h>

#include <utility>

namespace phalanx {

ParameterAverage::ParameterAverage(CommunicatorPtr group, Compressors::Choice compression, double weight)
    : uncompressed_(group, Compressors::Choice("none"), weight),
      steps_(std::move(group), std::move(compression), weight) {}

void ParameterAverage::attach(const FlatParameters& parameters) {
  values_.clear(), last_.clear(), moved_.clear();
  for (const auto& bucket : parameters.buckets()) {
    values_.push_back(bucket.values);
    if (!steps_.compresses()) continue;
    last_.push_back(bucket.values.clone());
    moved_.push_back(at::empty_like(bucket.values));
  }
  if (steps_.compresses()) steps_.attach_tensors(moved_, parameters);
}

void ParameterAverage::begin_anew() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < last_.size(); ++i) last_[i].copy_(values_[i]);
}

void ParameterAverage::average() {
  const at::NoGradGuard no_grad;
  std::vector<Work> works;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (steps_.compresses()) at::sub_out(moved_[i], values_[i], last_[i]);
    works.push_back(steps_.all_reduce_mean(steps_.compresses() ? moved_[i] : values_[i]));
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    works[i].wait();
    if (steps_.compresses()) values_[i].copy_(last_[i].add_(moved_[i]));
  }
}

void ParameterAverage::average(const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  uncompressed_.all_reduce_mean(values).wait();
}

StateDict ParameterAverage::state() const {
  StateDict all = steps_.state();
  for (std::size_t i = 0; i < last_.size(); ++i) all.push_back({"last/" + std::to_string(i), last_[i], true});
  return all;
}

}  // namespace phalanx
