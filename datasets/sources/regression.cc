// SPDX-License-Identifier: Apache-2.0
// Standard normal numbers and a noisy linear function of them, for linear regression. The weights of the function are
// drawn from the seed and scaled to a norm of about 1.
#include <cmath>
#include <cstdint>
#include <vector>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kWeights = 2;  // stream of the seed; 0 and 1 are the splits

struct RegressionConfig : GeneratedConfig {
  std::int64_t features = 10;
  double noise = 0.1;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("features", features, "number of features of a sample", config::between(1, 1 << 20));
    v("noise", noise, "standard deviation of the noise, which no function can predict", config::at_least(0));
    visit_seed(v);
  }
};

class Regression final : public GeneratedDataset {
 public:
  Regression(const RegressionConfig& config, Split split)
      : GeneratedDataset({.inputs = {{.name = "input", .shape = {config.features}}},
                          .targets = {{.name = "number", .shape = {1}}},
                          .task = "regression"},
                         split),
        noise_(config.noise) {
    RandomStream random(mix(static_cast<std::uint64_t>(config.seed), kWeights));
    for (std::int64_t i = 0; i < config.features; ++i) {
      weights_.push_back(random.normal() / std::sqrt(static_cast<double>(config.features)));
    }
  }

 private:
  void write(std::int64_t index, const Row& row) const override {
    RandomStream random(seed_of(index));
    auto* input = row.input<float>();
    double sum = noise_ * random.normal();
    for (const auto weight : weights_) {
      const double value = random.normal();
      sum += weight * value;
      *input++ = static_cast<float>(value);
    }
    *row.target<float>() = static_cast<float>(sum);
  }

  double noise_;
  std::vector<double> weights_;
};

const bool regression_registered = add_dataset_without_files<RegressionConfig>(
    "regression", "numbers and a noisy linear function of them", generated_splits<Regression, RegressionConfig>);

}  // namespace
}  // namespace phalanx
