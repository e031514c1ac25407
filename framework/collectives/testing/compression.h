// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/config/config.h"
#include "framework/base/random.h"
#include "framework/collectives/compression/compressor.h"
#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// Returns the compression that a config chooses with `compression: YAML`, e.g. "fp16" or "{name: topk, fraction:
/// 0.1}".
inline Compressors::Choice choose_compression(const std::string& yaml) {
  return config::load_as<Compressors::Choice>("compression", yaml, "test");
}

inline std::unique_ptr<Compressor> make_compressor(const std::string& yaml, const BucketLayout& layout) {
  return choose_compression(yaml).make(layout);
}

/// Returns the gradient of a rank in a step: [elements], uniform in [-1, 1). Every rank can compute it.
inline at::Tensor gradient_of(int rank, int step, std::int64_t elements) {
  const at::Tensor gradient = at::empty({elements}, at::kFloat);
  auto* values = gradient.mutable_data_ptr<float>();
  const auto seed = mix(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(step));
  for (std::int64_t i = 0; i < elements; ++i) {
    values[i] = static_cast<float>(mix(seed, static_cast<std::uint64_t>(i)) >> 40) * 0x1p-23F - 1;
  }
  return gradient;
}

/// Returns the mean of these gradients over all ranks: [elements] of float64.
inline at::Tensor mean_gradient(int ranks, int step, std::int64_t elements) {
  const at::Tensor mean = at::zeros({elements}, at::kDouble);
  for (int rank = 0; rank < ranks; ++rank) mean.add_(gradient_of(rank, step, elements).to(at::kDouble));
  return mean.div_(ranks);
}

/// Returns true if the tensor has the same bits on all ranks, including NaNs. Collective.
inline bool same_on_all_ranks(const at::Tensor& tensor, Communicator& group) {
  const at::Tensor bits = tensor.view(at::kInt);
  const at::Tensor all = at::empty({group.size(), bits.numel()}, at::kInt);
  group.all_gather(all, bits).wait();
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!at::equal(all[rank], bits)) return false;
  }
  return true;
}

}  // namespace phalanx::testing
