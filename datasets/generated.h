// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "datasets/dataset.h"
#include "framework/base/batch.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {

/// The config fields of a dataset whose samples the program computes.
struct GeneratedConfig {
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 2'000;
  std::int64_t seed = 1;

  template <class V>
  void visit_sizes(V& v) {
    v("train_samples", train_samples, "samples to train on", config::at_least(1));
    v("test_samples", test_samples, "samples to test on, none of them a training sample", config::at_least(1));
  }
  template <class V>
  void visit_seed(V& v) {
    v("seed", seed, "random seed of the samples");
  }
};

/// Samples that are computed whenever they are read. Each is a function of the seed of its split and its index, so it
/// depends neither on the number of ranks nor on the order of reading.
class GeneratedDataset : public Dataset {
 public:
  /// The number of samples of a split, and its seed: mix(seed of the dataset, 0) for training, mix(seed, 1) for tests.
  struct Split {
    std::int64_t samples;
    std::uint64_t seed;
  };

  std::int64_t size() const final { return split_.samples; }
  const SampleSpec& spec() const final { return spec_; }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const final;

 protected:
  /// The memory of one sample in a batch.
  class Row {
   public:
    Row(const Batch& batch, std::int64_t row) : batch_(batch), row_(row) {}

    /// Returns the first element of the sample in tensor `i` of the batch's inputs or targets. T is its dtype.
    template <class T>
    T* input(std::size_t i = 0) const {
      return begin<T>(batch_.inputs[i]);
    }
    template <class T>
    T* target(std::size_t i = 0) const {
      return begin<T>(batch_.targets[i]);
    }

   private:
    template <class T>
    T* begin(const at::Tensor& tensor) const {
      return tensor.data_ptr<T>() + row_ * tensor.stride(0);
    }

    const Batch& batch_;
    std::int64_t row_;
  };

  GeneratedDataset(SampleSpec spec, Split split);

  /// Returns the seed of a sample: mix(seed of the split, index).
  std::uint64_t seed_of(std::int64_t index) const;

 private:
  /// Writes sample `index` to all elements of `row`. Thread-safe.
  virtual void write(std::int64_t index, const Row& row) const = 0;

  SampleSpec spec_;
  Split split_;
};

/// Returns the splits of a dataset: a Made(config, split) for training and one for tests.
template <class Made, class Config>
Splits generated_splits(const Config& config) {
  const auto make = [&](std::int64_t samples, std::uint64_t split) {
    const auto seed = mix(static_cast<std::uint64_t>(config.seed), split);
    return std::make_shared<const Made>(config, GeneratedDataset::Split{.samples = samples, .seed = seed});
  };
  return {.train = make(config.train_samples, 0), .test = make(config.test_samples, 1)};
}

}  // namespace phalanx
