// SPDX-License-Identifier: Apache-2.0
// Recall at k of retrieval (Jegou, Douze, Schmid 2011, Product Quantization for Nearest Neighbor Search): the share of
// samples for which one of the k nearest embeddings, among all measured ones, has the same class. If samples have
// several members, the first one is used. If distances are equal, the embedding of the same class comes first. Samples
// that are alone in their class do not count.
//
// Output [n, members, width], target [n, members] int64; or [n, width] and [n]. Needs all embeddings: 8 width + 8 bytes
// per sample. At the end each rank has the embeddings of all ranks, and compares an equal part of them: samples^2 width
// / ranks operations.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/meters/across_ranks.h"
#include "engine/meters/embeddings.h"
#include "engine/meters/meter.h"

namespace phalanx {
namespace {

struct RetrievalConfig {
  std::int64_t k = 1;

  template <class V>
  void visit(V& v) {
    v("k", k, "nearest samples to look at", config::at_least(1));
  }
};

double square_distance(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

class Retrieval final : public Meter {
 public:
  explicit Retrieval(std::int64_t k) : k_(k) {}

  void add(const Batch& batch, const Step::Result& result) override {
    if (batch.valid == 0) return;
    const auto [vectors, classes] = embeddings_of(batch, result);
    width_ = vectors.size(2);
    vectors_.push_back(vectors.select(1, 0).flatten());
    classes_.push_back(classes.select(1, 0).contiguous());
  }

  Metrics take(Communicator& group) override {
    width_ = largest_of_ranks(width_, group);
    const at::Tensor vectors = gather_ranks(joined(std::exchange(vectors_, {}), at::kDouble), group);
    const at::Tensor classes = gather_ranks(joined(std::exchange(classes_, {}), at::kLong), group);
    std::int64_t found = 0, counted = 0;
    for (std::int64_t i = group.rank(); i < classes.numel(); i += group.size()) {
      const auto hit =
          is_found(i, vectors.const_data_ptr<double>(), classes.const_data_ptr<std::int64_t>(), classes.numel());
      counted += hit.counts;
      found += hit.found;
    }
    sum_over_ranks({{&found, 1}, {&counted, 1}}, group);
    const double recall = counted > 0 ? static_cast<double>(found) / static_cast<double>(counted) : 0;
    return {{"recall_at_" + std::to_string(k_), recall}};
  }

  State state() override {
    return {at::full({1}, width_, at::kLong), joined(vectors_, at::kDouble), joined(classes_, at::kLong)};
  }
  void merge_state(const State& state) override {
    width_ = std::max(width_, state.at(0).item<std::int64_t>());
    vectors_.push_back(state.at(1));
    classes_.push_back(state.at(2));
  }

 private:
  struct Hit {
    bool counts, found;
  };

  Hit is_found(std::int64_t sample, const double* vectors, const std::int64_t* classes, std::int64_t count) const {
    distances_.resize(static_cast<std::size_t>(count));
    bool counts = false;
    double nearest = std::numeric_limits<double>::infinity();  // within the same class
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == sample) continue;
      const double distance = square_distance(vectors + sample * width_, vectors + i * width_, width_);
      distances_[static_cast<std::size_t>(i)] = distance;
      if (classes[i] != classes[sample]) continue;
      counts = true;
      if (distance < nearest) nearest = distance;
    }
    std::int64_t nearer = 0;  // from other classes
    for (std::int64_t i = 0; i < count; ++i) {
      if (i != sample && classes[i] != classes[sample] && distances_[static_cast<std::size_t>(i)] < nearest) ++nearer;
    }
    return {.counts = counts, .found = counts && std::isfinite(nearest) && nearer < k_};
  }

  std::int64_t k_;
  std::int64_t width_ = 0;
  std::vector<at::Tensor> vectors_, classes_;  // flat, by batch
  mutable std::vector<double> distances_;      // from one sample to all others
};

const bool retrieval_registered = Meters::global().add<RetrievalConfig>(
    "retrieval", "recall at k: share of samples with one of their class among the k nearest embeddings",
    [](const RetrievalConfig& config) { return std::make_unique<Retrieval>(config.k); });

}  // namespace
}  // namespace phalanx
