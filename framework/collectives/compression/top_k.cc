// SPDX-License-Identifier: Apache-2.0
// Sends the k largest of n elements by magnitude now, and the rest later (Stich et al.: Sparsified SGD with Memory,
// 2018; Lin et al.: Deep Gradient Compression, 2018). Each rank has a residual e, which is zero at first. A step is
//
//   1. e += tensor; each rank selects its k = ceil(fraction n) largest |e| and removes them from e
//   2. the selected values of every rank and their indices go to all ranks                         all_gather
//   3. the mean adds them in rank order; at most P k elements of it are not 0
//
// The selected values are delivered exactly up to rounding. Wire: (P - 1) 8 k bytes per rank and step (float32 value,
// int32 index): less than float32 if k < n / P.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/collectives/compression/compressor.h"

namespace phalanx {
namespace {

struct TopKConfig {
  double fraction = 0.01;

  template <class V>
  void visit(V& v) {
    v("fraction", fraction, "fraction of the elements to send, at least one", config::between(0, 1));
  }
};

// Magnitudes compare as integers in the same order as they do as floats. NaN compares above all others, so it is
// delivered.
std::int32_t magnitude(float value) { return std::bit_cast<std::int32_t>(value) & 0x7fffffff; }

// Returns the indices of the `count` largest magnitudes, in ascending order. Ties go to the lower index.
std::vector<std::int32_t> largest(std::span<const float> values, std::size_t count) {
  std::vector<std::int32_t> magnitudes(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude);
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(magnitudes, last, std::greater());
  const auto threshold = *last;
  auto equal = std::count(magnitudes.begin(), last + 1, threshold);
  std::vector<std::int32_t> chosen;
  chosen.reserve(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto m = magnitude(values[i]);
    if (m > threshold || (m == threshold && equal-- > 0)) chosen.push_back(static_cast<std::int32_t>(i));
  }
  return chosen;
}

class TopK final : public Compressor {
 public:
  TopK(const TopKConfig& config, const BucketLayout& layout)
      : Compressor(layout), k_(count(config.fraction, layout.elements)) {
    if (layout.elements > std::numeric_limits<std::int32_t>::max()) {
      throw std::invalid_argument("topk: a bucket of " + std::to_string(layout.elements) +
                                  " elements; int32 indices suffice for at most 2^31 - 1: make the buckets smaller");
    }
  }

  StateDict state(const Communicator&) override { return {{"residual", residual()}}; }

 private:
  static std::int64_t count(double fraction, std::int64_t elements) {
    const auto share = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(elements)));
    return std::clamp<std::int64_t>(share, std::min<std::int64_t>(elements, 1), elements);
  }

  // Sends 2 k int32 per rank: the indices, then the bits of the values.
  void exchange(Wire& wire, at::Tensor tensor) override {
    const at::Tensor chosen = choose(tensor);
    const at::Tensor all = at::empty({wire.size(), 2 * k_}, at::kInt);
    wire.all_gather(all, chosen);
    tensor.zero_();
    for (int rank = 0; rank < wire.size(); ++rank) add(all[rank], tensor);
    tensor.div_(wire.size());
  }

  at::Tensor choose(const at::Tensor& tensor) {
    residual().add_(tensor);
    auto* values = residual_.mutable_data_ptr<float>();
    const at::Tensor message = at::empty({2 * k_}, at::kInt);
    auto* index = message.mutable_data_ptr<std::int32_t>();
    auto* bits = index + k_;
    for (const auto i : largest({values, static_cast<std::size_t>(residual_.numel())}, static_cast<std::size_t>(k_))) {
      *index++ = i;
      *bits++ = std::bit_cast<std::int32_t>(std::exchange(values[i], 0.0F));
    }
    residual_.nan_to_num_(0, 0, 0);  // needed if more than k of them are not finite
    return message;
  }

  at::Tensor& residual() {
    if (!residual_.defined()) residual_ = at::zeros({layout().elements}, at::kFloat);
    return residual_;
  }

  void add(const at::Tensor& message, const at::Tensor& tensor) const {
    const auto* index = message.const_data_ptr<std::int32_t>();
    const at::Tensor values = message.narrow(0, k_, k_).view(at::kFloat);
    const auto* value = values.const_data_ptr<float>();
    auto* sum = tensor.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < k_; ++i) sum[index[i]] += value[i];
  }

  std::int64_t k_;
  at::Tensor residual_;  // [n] e
};

const bool top_k_registered = Compressors::global().add<TopKConfig>(
    "topk", "the largest elements and their indices, with error feedback",
    [](const TopKConfig& config, const BucketLayout& layout) { return std::make_unique<TopK>(config, layout); });

}  // namespace
}  // namespace phalanx
