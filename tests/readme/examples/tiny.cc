// One hidden layer: input [n, ...] float -> logits [n, classes]. Parameters fc{1,2}.{weight, bias}.
#include <ATen/ops/relu.h>

#include "models/linear.h"
#include "models/network.h"

namespace phalanx {
namespace {

struct TinyConfig {
  std::int64_t hidden = 32;

  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "width of the hidden layer", config::at_least(1));
  }
};

class Tiny final : public Network {
 public:
  Tiny(const TinyConfig& config, const SampleSpec& sample) {
    std::int64_t inputs = 1;
    for (const auto length : sample.input) inputs *= length;
    fc1_ = register_module("fc1", Linear(inputs, config.hidden));
    fc2_ = register_module("fc2", Linear(config.hidden, sample.classes));
  }

  at::Tensor forward(at::Tensor input) override { return fc2_(at::relu(fc1_(input.flatten(1)))); }

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
};

const bool registered = Models::global().add<TinyConfig>(
    "tiny", "one hidden layer",
    [](const TinyConfig& config, const SampleSpec& sample) { return std::make_shared<Tiny>(config, sample); });

}  // namespace
}  // namespace phalanx
