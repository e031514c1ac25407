// SPDX-License-Identifier: Apache-2.0
// Standard normal numbers and a noisy linear function of them, for linear regression. The weights of the function are
// drawn from the seed and scaled to a norm of about 1.
#include <c10/util/Exception.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kWeights = 2;  // stream of the seed; 0 and 1 are the splits

struct RegressionConfig {
  std::int64_t train_samples = 10'000;
  std::int64_t test_samples = 2'000;
  std::int64_t features = 10;
  double noise = 0.1;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "samples to train on", config::at_least(1));
    v("test_samples", test_samples, "samples to test on", config::at_least(1));
    v("features", features, "number of features of a sample", config::between(1, 1 << 20));
    v("noise", noise, "standard deviation of the noise, which no function can predict", config::at_least(0));
    v("seed", seed, "random seed of the samples");
    v("root", root, "unused, since there are no files");
  }
};

class Regression final : public Dataset {
 public:
  // `split` separates the training samples from the test samples.
  Regression(const RegressionConfig& config, std::int64_t samples, std::uint64_t split)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {
    RandomStream random(mix(static_cast<std::uint64_t>(config.seed), kWeights));
    for (std::int64_t i = 0; i < config.features; ++i) {
      weights_.push_back(random.normal() / std::sqrt(static_cast<double>(config.features)));
    }
  }

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, config_.features}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows, std::int64_t{1}}, at::kFloat).data_ptr<float>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
      double sum = config_.noise * random.normal();
      for (const auto weight : weights_) {
        const double value = random.normal();
        sum += weight * value;
        *input++ = static_cast<float>(value);
      }
      *target++ = static_cast<float>(sum);
    }
  }

 private:
  RegressionConfig config_;
  SampleSpec spec_{.inputs = {{.name = "input", .shape = {config_.features}}},
                   .targets = {{.name = "number", .shape = {1}}},
                   .task = "regression"};
  std::vector<double> weights_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_regression(const RegressionConfig& config) {
  return {.train = std::make_shared<Regression>(config, config.train_samples, 0),
          .test = std::make_shared<Regression>(config, config.test_samples, 1)};
}

const bool regression_registered = Datasets::global().add<RegressionConfig>(
    "regression", "numbers and a noisy linear function of them", make_regression);

}  // namespace
}  // namespace phalanx
