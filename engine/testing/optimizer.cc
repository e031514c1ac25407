// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/optimizer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "framework/base/config/config.h"

namespace phalanx::testing {
namespace {

at::Tensor random(std::uint64_t seed, std::int64_t elements, at::ScalarType dtype) {
  return at::randn({elements}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble).to(dtype);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const std::string& yaml, const ParameterGroups& groups) {
  return config::load_as<Optimizers::Choice>("optimizer", yaml, "test.yaml").make(groups);
}

Bucket small_network(at::ScalarType dtype) {
  const std::vector<Segment> shapes{{"conv.weight", {6, 3, 3, 3}}, {"conv.bias", {6}},
                                    {"layer.weight", {20, 33}},    {"layer.bias", {20}},
                                    {"head.weight", {10, 20}},     {"head.bias", {10}}};
  Bucket bucket;
  std::int64_t begin = 0;
  for (auto segment : shapes) {
    segment.begin = begin;
    segment.count = 1;
    for (const auto size : segment.shape) segment.count *= size;
    begin = segment.end();
    bucket.segments.push_back(segment);
  }
  bucket.values = random(1, begin, dtype);
  bucket.gradients = at::zeros_like(bucket.values);
  return bucket;
}

at::Tensor parameter_of(const at::Tensor& run, const Segment& segment) {
  return run.narrow(0, segment.begin, segment.count).view(segment.shape);
}

at::Tensor gradients_of(std::int64_t update, std::int64_t elements, at::ScalarType dtype) {
  return random(static_cast<std::uint64_t>(1000 + update), elements, dtype);
}

void train(Optimizer& optimizer, const std::vector<Slice>& slices, std::int64_t from, std::int64_t to) {
  std::int64_t elements = 0;
  for (const auto& slice : slices) elements += slice.values.numel();
  for (auto update = from; update < to; ++update) {
    const auto gradients = gradients_of(update, elements, slices.front().values.scalar_type());
    std::int64_t begin = 0;
    for (const auto& slice : slices) {
      slice.gradients.copy_(gradients.narrow(0, begin, slice.values.numel()));
      begin += slice.values.numel();
    }
    optimizer.update();
  }
}

Twins::Twins(const std::string& yaml, at::ScalarType dtype)
    : bucket_(small_network(dtype)),
      start_(bucket_.values.clone()),
      optimizer_(make_optimizer(yaml, {{"bias$", 0.5, 0}})) {
  for (const auto& segment : bucket_.segments) {
    const bool bias = segment.name.ends_with("bias");
    const at::Tensor values = parameter_of(start_, segment).clone();
    reference_.push_back({segment.name, values, at::zeros_like(values), bias ? 0.5 : 1, bias ? 0.0 : 1});
  }
  optimizer_->attach({whole(bucket_)});
}

std::vector<at::Tensor> Twins::leaves(bool biases) {
  std::vector<at::Tensor> all;
  for (auto& twin : reference_) {
    if (twin.name.ends_with("bias") != biases) continue;
    twin.values.requires_grad_().mutable_grad() = twin.gradients;
    all.push_back(twin.values);
  }
  return all;
}

void Twins::next_gradients() {
  bucket_.gradients.copy_(gradients_of(update_++, bucket_.values.numel(), bucket_.values.scalar_type()));
  for (std::size_t i = 0; i < reference_.size(); ++i)
    reference_[i].gradients.copy_(parameter_of(bucket_.gradients, bucket_.segments[i]));
}

void Twins::expect_same(double tolerance) const {
  for (std::size_t i = 0; i < reference_.size(); ++i) {
    const auto ours = parameter_of(bucket_.values, bucket_.segments[i]), theirs = reference_[i].values.detach();
    EXPECT_TRUE(at::allclose(ours, theirs, tolerance, tolerance))
        << reference_[i].name << " differs by " << ours.sub(theirs).abs().max().item<double>();
    EXPECT_FALSE(at::allclose(ours, parameter_of(start_, bucket_.segments[i]), 1e-3, 1e-3))
        << reference_[i].name << " did not change";
  }
}

}  // namespace phalanx::testing
