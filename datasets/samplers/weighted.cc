// SPDX-License-Identifier: Apache-2.0
// Samples drawn with replacement in proportion to weights, with Walker's alias method (A. J. Walker 1977, An Efficient
// Method for Generating Discrete Random Variables with General Distributions; tables as in M. D. Vose 1991). Each
// position is drawn in constant time as a function of (seed, epoch, position).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "datasets/malformed.h"
#include "datasets/root.h"
#include "datasets/samplers/whole_order.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

struct WeightedConfig {
  std::string weights;
  std::int64_t samples = 0;

  template <class V>
  void visit(V& v) {
    v("weights", weights,
      "text file with a weight for each training sample, one per line; empty: all classes are equally likely");
    v("samples", samples, "samples to draw in an epoch; 0: as many as the dataset has", config::between(0, 1L << 28));
  }
};

constexpr std::int64_t kWindow = 4096;

class Weighted final : public SampleOrder {
 public:
  Weighted(std::vector<double> weights, std::int64_t positions, std::int64_t seed)
      : positions_(positions), seed_(seed), share_(std::move(weights)), alias_(share_.size()) {
    // Each sample has a column of height 1. The part that its own share does not fill belongs to one other sample, its
    // alias.
    const double sum = std::accumulate(share_.begin(), share_.end(), 0.0);
    std::vector<std::size_t> small, large;
    for (std::size_t i = 0; i < share_.size(); ++i) {
      share_[i] *= static_cast<double>(share_.size()) / sum;
      alias_[i] = static_cast<std::int64_t>(i);
      (share_[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const auto lesser = small.back(), greater = large.back();
      small.pop_back();
      alias_[lesser] = static_cast<std::int64_t>(greater);
      share_[greater] -= 1 - share_[lesser];
      if (share_[greater] >= 1) continue;
      large.pop_back();
      small.push_back(greater);
    }
    // Samples that are left because of rounding have a share of almost 1 and are their own alias.
  }

  std::int64_t size() const override { return positions_; }
  std::int64_t window() const override { return kWindow; }

  void fill(std::int64_t epoch, std::int64_t number, std::vector<std::int64_t>& samples) const override {
    const auto begin = number * kWindow, end = std::min(begin + kWindow, positions_);
    samples.clear();
    for (auto position = begin; position < end; ++position) {
      RandomStream random(mix(epoch_seed(seed_, epoch), static_cast<std::uint64_t>(position)));
      const auto column = static_cast<std::size_t>(random.below(share_.size()));
      const double height = random.below_one();
      samples.push_back(height < share_[column] ? static_cast<std::int64_t>(column) : alias_[column]);
    }
  }

 private:
  std::int64_t positions_, seed_;
  std::vector<double> share_;
  std::vector<std::int64_t> alias_;
};

std::vector<double> balanced(const Dataset& dataset) {
  const auto labels = labels_of(dataset, "weighted without a file of weights");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dataset.spec().targets[0].classes));
  for (const auto label : labels) ++counts.at(static_cast<std::size_t>(label));
  std::vector<double> weights;
  for (const auto label : labels) weights.push_back(1 / static_cast<double>(counts[static_cast<std::size_t>(label)]));
  return weights;
}

std::vector<double> read_weights(const std::string& name, std::int64_t samples) {
  const auto path = dataset_root(name, "");
  const std::string text = read_file(path);
  std::vector<double> weights;
  double sum = 0;
  for (const char *next = text.data(), *const end = next + text.size();;) {
    while (next != end && (*next == ' ' || *next == '\n' || *next == '\r' || *next == '\t')) ++next;
    if (next == end) break;
    double weight = -1;
    const auto [stop, error] = std::from_chars(next, end, weight);
    if (error != std::errc() || !(weight >= 0) || !std::isfinite(weight)) {
      throw_malformed(path, next - text.data(), "expected a weight of at least 0, one per line");
    }
    weights.push_back(weight);
    sum += weight;
    next = stop;
  }
  if (std::ssize(weights) != samples || !(sum > 0)) {
    throw DataError(path.string() + ": has " + std::to_string(weights.size()) + " weights whose sum is " +
                    std::to_string(sum) + ", but loader.sampler.weights needs one for each of " +
                    std::to_string(samples) + " training samples, not all of them 0");
  }
  return weights;
}

const bool weighted_registered = Samplers::global().add<WeightedConfig>(
    "weighted", "drawn with replacement, in proportion to weights, or with all classes equally likely",
    [](const WeightedConfig& config, const SampleOrderInput& input) {
      auto weights =
          config.weights.empty() ? balanced(input.dataset) : read_weights(config.weights, input.dataset.size());
      const auto positions = config.samples > 0 ? config.samples : input.dataset.size();
      return std::make_shared<Weighted>(std::move(weights), positions, input.seed);
    });

}  // namespace
}  // namespace phalanx
