// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/sharded/gradient_shards.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace phalanx {
namespace {

constexpr std::size_t kMaxInFlight = 2;

// Moves the parameters' grads to their places in the bucket, and writes zeros for parameters without one.
void move_gradients(const Bucket& bucket, const at::Tensor& run) {
  std::int64_t end = 0;
  const auto zero_until = [&](std::int64_t next) { run.narrow(0, end, next - end).zero_(); };
  for (std::size_t i = 0; i < bucket.segments.size(); ++i) {
    at::Tensor parameter = bucket.parameters[i];
    const Segment& segment = bucket.segments[i];
    if (!parameter.grad().defined()) continue;
    zero_until(segment.begin);
    view_of(run, segment).copy_(parameter.grad());
    parameter.mutable_grad().reset();
    end = segment.end();
  }
  zero_until(run.numel());
}

}  // namespace

GradientShards::GradientShards(CommunicatorPtr group, const FlatParameters& parameters,
                               const std::vector<Shards>& shards, LocalGradients local_gradients)
    : group_(std::move(group)), local_gradients_(std::move(local_gradients)), pool_(group_) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Bucket& bucket = parameters.buckets()[i];
    for (at::Tensor parameter : bucket.parameters) parameter.mutable_grad().reset();
    at::Tensor gradients = bucket.gradients;
    const auto options = bucket.values.options().requires_grad(false);
    gradients.set_data(at::empty({0}, options));
    pool_.make_room_for(bucket);
    parts_.push_back({bucket, shards[i], at::zeros({shards[i].count(group_->rank())}, options)});
  }
}

void GradientShards::reduce(std::size_t bucket) {
  const at::NoGradGuard no_grad;
  Part& part = parts_[bucket];
  part.reduced = true;
  while (in_flight_.size() >= kMaxInFlight) add_oldest();
  const at::Tensor buffer = pool_.take(), run = buffer.narrow(0, 0, part.bucket.values.numel());
  move_gradients(part.bucket, run);
  if (local_gradients_) local_gradients_(run);
  const auto own = run.narrow(0, part.shards.begin(group_->rank()), part.own.numel());
  in_flight_.push_back({bucket, buffer, group_->reduce_scatter(own, run, Reduction::kMean, part.shards.counts())});
}

void GradientShards::add_oldest() {
  const at::NoGradGuard no_grad;
  InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  oldest.work.wait();
  const Part& part = parts_[oldest.bucket];
  part.own.add_(oldest.buffer.narrow(0, part.shards.begin(group_->rank()), part.own.numel()));
  pool_.give(std::move(oldest.buffer));
}

void GradientShards::complete() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].reduced) reduce(i);
  }
  while (!in_flight_.empty()) add_oldest();
  for (auto& part : parts_) part.reduced = false;
}

std::int64_t GradientShards::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : parts_) bytes += static_cast<std::int64_t>(part.own.nbytes());
  return bytes;
}

}  // namespace phalanx
