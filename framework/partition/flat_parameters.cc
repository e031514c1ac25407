// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/flat_parameters.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

NamedTensors numbered(const std::vector<at::Tensor>& parameters) {
  NamedTensors named;
  for (const auto& parameter : parameters) named.emplace_back(std::to_string(named.size()), parameter);
  return named;
}

std::int64_t rounded_up(std::int64_t number, std::int64_t unit) { return (number + unit - 1) / unit * unit; }

// Returns the number of elements from the start of a parameter to the start of the next: a whole number of cache lines.
std::int64_t padded(const at::Tensor& parameter) {
  constexpr std::int64_t kCacheLine = 64;
  return rounded_up(parameter.numel(), std::max<std::int64_t>(kCacheLine / parameter.element_size(), 1));
}

Bucket flatten(const NamedTensors& parameters, Communicator& memory, std::int64_t parts) {
  const at::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const auto& [name, parameter] : parameters) elements += padded(parameter);
  if (parts > 1) elements = rounded_up(elements, parts * FlatParameters::kPartUnit);
  const auto options = parameters.front().second.options().requires_grad(false);
  Bucket bucket{memory.allocate({elements}, options), memory.allocate({elements}, options), {}, {}};
  std::int64_t begin = 0;
  for (const auto& [name, parameter] : parameters) {
    Segment segment{name, parameter.sizes().vec(), begin, parameter.numel(), 0};
    if (!parameter.is_contiguous() && parameter.is_non_overlapping_and_dense()) {
      segment.strides = parameter.strides().vec();
    }
    view_of(bucket.values, segment).copy_(parameter);
    at::Tensor moved = parameter;
    moved.set_data(view_of(bucket.values, segment));
    moved.mutable_grad() = view_of(bucket.gradients, segment);
    bucket.parameters.push_back(moved);
    bucket.segments.push_back(std::move(segment));
    begin += padded(parameter);
  }
  return bucket;
}

}  // namespace

void view_values(const Bucket& bucket, const at::Tensor& memory) {
  const at::NoGradGuard no_grad;
  at::Tensor values = bucket.values;
  values.set_data(memory);
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    at::Tensor parameter = bucket.parameters[i];
    const auto begin = memory.storage_offset() + bucket.segments[i].begin;
    parameter.set_data(memory.as_strided(parameter.sizes(), parameter.strides(), begin));
  }
}

bool Segment::whole() const {
  std::int64_t elements = 1;
  for (const auto size : shape) elements *= size;
  return count == elements;
}

at::Tensor view_of(const at::Tensor& run, const Segment& segment) {
  if (!segment.strides.empty()) {
    return run.as_strided(segment.shape, segment.strides, run.storage_offset() + segment.begin);
  }
  const at::Tensor elements = run.narrow(0, segment.begin, segment.count);
  return segment.whole() ? elements.view(segment.shape) : elements;
}

std::vector<Segment> cut(const std::vector<Segment>& segments, std::int64_t begin, std::int64_t count) {
  std::vector<Segment> inside;
  for (const auto& segment : segments) {
    const auto from = std::max(segment.begin, begin), to = std::min(segment.end(), begin + count);
    if (from >= to) continue;
    inside.push_back(
        {segment.name, segment.shape, from - begin, to - from, segment.offset + from - segment.begin, segment.strides});
  }
  return inside;
}

FlatParameters::FlatParameters(const std::vector<at::Tensor>& parameters, Communicator& memory,
                               std::int64_t bucket_bytes)
    : FlatParameters(numbered(parameters), memory, bucket_bytes) {}

FlatParameters::FlatParameters(const NamedTensors& parameters, Communicator& memory, std::int64_t bucket_bytes,
                               std::int64_t parts, const GroupOf& group_of) {
  NamedTensors run;
  std::int64_t bytes = 0;
  const auto close = [&] {
    if (!run.empty()) buckets_.push_back(flatten(std::exchange(run, {}), memory, parts));
    bytes = 0;
  };
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    const auto& tensor = parameter->second;
    if (tensor.scalar_type() != parameters.front().second.scalar_type()) {
      throw std::invalid_argument("a model's parameters must have one dtype");
    }
    if (!run.empty() && group_of(parameter->first) != group_of(run.back().first)) close();
    run.push_back(*parameter);
    bytes += static_cast<std::int64_t>(tensor.nbytes());
    if (bytes >= bucket_bytes) close();
  }
  close();
}

}  // namespace phalanx
