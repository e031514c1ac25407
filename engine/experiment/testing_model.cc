// A model for tests of whole runs: a convolution with batch norm, and dropout.
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "models/batch_norm.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct NormsConfig {
  double dropout = 0;

  template <class V>
  void visit(V& v) {
    v("dropout", dropout, "share of features left out", config::between(0, 1));
  }
};

class Norms final : public Network {
 public:
  Norms(const NormsConfig& config, const SampleSpec& sample) : config_(config) {
    static std::atomic<std::int64_t> made{0};
    conv_ = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(sample.input[0], 4, 5).stride(2)));
    norm_ = register_module("norm", BatchNorm2d(4));
    fc_ = register_module("fc", torch::nn::Linear(4, sample.classes));
    register_buffer("number", at::full({1}, ++made, at::kLong));  // each model has another
  }

  at::Tensor forward(at::Tensor input) override {
    return fc_(at::dropout(norm_(conv_(input)).relu().mean({2, 3}), config_.dropout, is_training()));
  }

 private:
  NormsConfig config_;
  torch::nn::Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

const bool registered = Models::global().add<NormsConfig>(
    "norms_under_test", "batch norm and dropout",
    [](const NormsConfig& config, const SampleSpec& sample) { return std::make_shared<Norms>(config, sample); });

}  // namespace
}  // namespace phalanx
