// SPDX-License-Identifier: Apache-2.0
#include "datasets/tables/dense_samples.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "datasets/batch_memory.h"

namespace phalanx {
namespace {

class DenseDataset final : public Dataset {
 public:
  DenseDataset(DenseSamples samples, std::int64_t count)
      : data_(std::move(samples)),
        spec_(spec_of(data_, count)),
        width_(std::accumulate(data_.shape.begin(), data_.shape.end(), std::int64_t{1}, std::multiplies())),
        samples_(data_.classes.empty() ? std::ssize(data_.numbers) / data_.width : std::ssize(data_.classes)) {
    TORCH_CHECK(std::ssize(data_.values) == width_ * samples_, data_.values.size(), " values are not ", samples_,
                " samples of ", width_);
  }

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t label(std::int64_t index) const override {
    return data_.classes.empty() ? -1 : data_.classes.at(static_cast<std::size_t>(index));
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    std::vector<std::int64_t> shape{rows};
    shape.insert(shape.end(), data_.shape.begin(), data_.shape.end());
    auto* input = ensure(batch.inputs, 0, shape, at::kFloat).data_ptr<float>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      input = std::copy_n(data_.values.begin() + index * width_, width_, input);
    }
    if (!data_.classes.empty()) {
      auto* target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
      for (const auto index : indices) *target++ = data_.classes[static_cast<std::size_t>(index)];
    } else {
      auto* target = ensure(batch.targets, 0, std::array{rows, data_.width}, at::kFloat).data_ptr<float>();
      for (const auto index : indices) {
        target = std::copy_n(data_.numbers.begin() + index * data_.width, data_.width, target);
      }
    }
  }

 private:
  DenseSamples data_;
  SampleSpec spec_;
  std::int64_t width_, samples_;
};

}  // namespace

SampleSpec spec_of(const DenseSamples& samples, std::int64_t count) {
  if (count > 0) return classification_samples(samples.shape, count);
  return {.inputs = {{.name = "input", .shape = samples.shape}},
          .targets = {{.name = "number", .shape = {samples.width}}},
          .task = "regression"};
}

std::shared_ptr<const Dataset> make_dense(DenseSamples samples, std::int64_t count) {
  return std::make_shared<DenseDataset>(std::move(samples), count);
}

}  // namespace phalanx
