// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "tools/data/commands.h"
#include "tools/data/sample_some.h"

namespace phalanx {
namespace {

constexpr std::int64_t kAtOnce = 256;  // samples in memory

std::string shape_of(const TensorSpec& tensor) {
  std::string text;
  for (const auto size : tensor.shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "1" : text;
}

// Statistics of one tensor over samples, kept as sums.
class Sums {
 public:
  explicit Sums(const TensorSpec& spec) : spec_(spec) {
    if (spec.classes > 0) {
      counts_ = at::zeros({spec.classes}, at::kLong);
    } else {
      const auto channels = spec.shape.size() == 3 ? spec.shape[0] : 1;
      sums_ = at::zeros({2, channels}, at::kDouble);
    }
  }

  void add(const at::Tensor& values) {
    if (spec_.classes > 0) {
      const at::Tensor flat = values.flatten(), counted = flat.masked_select(flat != kIgnored);
      counts_ += at::bincount(counted, {}, spec_.classes);
      return;
    }
    const at::Tensor channels = values.to(at::kDouble).view({values.size(0), sums_.size(1), -1});
    sums_[0] += channels.sum(at::IntArrayRef{0, 2});
    sums_[1] += channels.square().sum(at::IntArrayRef{0, 2});
    count_ += channels.size(0) * channels.size(2);
  }

  void print() const {
    std::printf("  %-12s %s", spec_.name.c_str(), shape_of(spec_).c_str());
    if (spec_.classes > 0) {
      std::printf(", %lld classes: ", static_cast<long long>(spec_.classes));
      print_counts();
      return;
    }
    for (std::int64_t channel = 0; channel < sums_.size(1); ++channel) {
      const double mean = sums_[0][channel].item<double>() / static_cast<double>(count_);
      const double square = sums_[1][channel].item<double>() / static_cast<double>(count_);
      std::printf("%s mean %.4f, deviation %.4f", channel == 0 ? ":" : ";", mean,
                  std::sqrt(std::max(square - mean * mean, 0.0)));
    }
    std::printf("\n");
  }

 private:
  void print_counts() const {
    constexpr std::int64_t kMost = 20;  // classes that fit on a line
    const auto* counts = counts_.const_data_ptr<std::int64_t>();
    const std::span all(counts, static_cast<std::size_t>(spec_.classes));
    if (spec_.classes <= kMost) {
      for (const auto count : all) std::printf("%lld ", static_cast<long long>(count));
      std::printf("of each\n");
      return;
    }
    std::printf("%lld to %lld of each, %lld do not occur\n", static_cast<long long>(std::ranges::min(all)),
                static_cast<long long>(std::ranges::max(all)), static_cast<long long>(std::ranges::count(all, 0)));
  }

  TensorSpec spec_;
  at::Tensor counts_, sums_;
  std::int64_t count_ = 0;
};

void print_split(const char* name, const Dataset& dataset, std::int64_t samples, std::int64_t seed) {
  const auto indices = sample_some(dataset.size(), samples, seed);
  std::vector<Sums> inputs, targets;
  for (const auto& spec : dataset.spec().inputs) inputs.emplace_back(spec);
  for (const auto& spec : dataset.spec().targets) targets.emplace_back(spec);
  Batch batch;
  for (std::size_t begin = 0; begin < indices.size(); begin += kAtOnce) {
    dataset.gather(std::span(indices).subspan(begin, std::min<std::size_t>(kAtOnce, indices.size() - begin)),
                   static_cast<std::uint64_t>(seed), batch);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].add(batch.inputs[i]);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i].add(batch.targets[i]);
  }
  std::printf("%s: %lld samples", name, static_cast<long long>(dataset.size()));
  if (std::ssize(indices) < dataset.size()) std::printf(", of which %zu were read", indices.size());
  std::printf("\n");
  for (const auto& sums : inputs) sums.print();
  for (const auto& sums : targets) sums.print();
}

}  // namespace

void print_statistics(const Splits& splits, std::int64_t samples, std::int64_t seed) {
  print_split("train", *splits.train, samples, seed);
  if (splits.validation) print_split("validation", *splits.validation, samples, seed);
  print_split("test", *splits.test, samples, seed);
}

}  // namespace phalanx
