// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/gradient_group.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns the shapes of a bucket's parameters. A parameter that is split between ranks has no shape here: its local
// part is a flat range. The same holds for the padding between parameters.
std::vector<std::vector<std::int64_t>> shapes_of(const Bucket& bucket) {
  std::vector<std::vector<std::int64_t>> shapes;
  std::int64_t end = 0;
  const auto add_gap = [&](std::int64_t next) {
    if (next > end) shapes.push_back({next - end});
  };
  for (const auto& segment : bucket.segments) {
    add_gap(segment.begin);
    shapes.push_back(segment.whole() ? segment.shape : std::vector<std::int64_t>{segment.count});
    end = segment.end();
  }
  add_gap(bucket.values.numel());
  return shapes;
}

bool requires_gradient(const Bucket& bucket) {
  return std::ranges::any_of(bucket.parameters, &at::Tensor::requires_grad);
}

}  // namespace

GradientGroup::GradientGroup(CommunicatorPtr group, Compressors::Choice compression, double weight)
    : group_(std::move(group)), compression_(std::move(compression)), weight_(weight) {}

void GradientGroup::attach(const FlatParameters& parameters) {
  std::vector<at::Tensor> gradients;
  for (const auto& bucket : parameters.buckets()) gradients.push_back(bucket.gradients);
  attach_tensors(gradients, parameters);
  if (!compresses()) return;
  for (const auto& bucket : parameters.buckets()) {
    if (requires_gradient(bucket)) buckets_.push_back(bucket);
  }
}

void GradientGroup::attach_tensors(const std::vector<at::Tensor>& tensors, const FlatParameters& parameters) {
  if (!compresses()) return;
  const auto& buckets = parameters.buckets();
  tensors_ = tensors;
  buckets_.clear();
  compressed_ =
      std::make_shared<CompressedCommunicator>(group_, compression_, std::max<std::size_t>(buckets.size(), 1));
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (tensors[i].scalar_type() != at::kFloat) {
      throw ConfigError("strategy.compression: " + compression_.selected() + " is for gradients of Float, not of " +
                        c10::toString(tensors[i].scalar_type()) + "; use compression: none");
    }
    compressed_->set_shapes(tensors[i], shapes_of(buckets[i]));
  }
}

bool GradientGroup::rests(const at::Tensor& gradients) const {
  const auto bucket = std::ranges::find_if(
      buckets_, [&](const Bucket& one) { return one.gradients.const_data_ptr() == gradients.const_data_ptr(); });
  return bucket != buckets_.end() && !requires_gradient(*bucket);
}

Work GradientGroup::all_reduce_mean(const at::Tensor& gradients) {
  if (rests(gradients)) return {};
  if (weight_ != 1) gradients.mul_(weight_);
  return (compressed_ ? *compressed_ : *group_).all_reduce(gradients, Reduction::kMean);
}

StateDict GradientGroup::state() const {
  StateDict all;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    append(all, std::to_string(i) + "/", compressed_->state(tensors_[i]));
  }
  return all;
}

Metrics metrics_of(const Traffic& traffic) {
  return {{"reductions", static_cast<double>(traffic.reductions)},
          {"sent_bytes", static_cast<double>(traffic.sent_bytes)},
          {"uncompressed_bytes", static_cast<double>(traffic.uncompressed_bytes)},
          {"compression_ratio", traffic.ratio()}};
}

}  // namespace phalanx
