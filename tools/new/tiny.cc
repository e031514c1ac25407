// One hidden layer: input [n, ...] float -> logits [n, classes]. Parameters fc{1,2}.{weight, bias}.
#include <ATen/ops/relu.h>

#include "models/linear.h"
#include "models/network.h"
#include "models/refuse_sample.h"

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
  Tiny(const TinyConfig& config, const TensorSpec& input, std::int64_t classes) {
    std::int64_t inputs = 1;
    for (const auto length : input.shape) inputs *= length;
    fc1_ = register_module("fc1", Linear(inputs, config.hidden));
    fc2_ = register_module("fc2", Linear(config.hidden, classes));
  }

  at::Tensor forward(at::Tensor input) override { return fc2_(at::relu(fc1_(input.flatten(1)))); }

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
};

std::shared_ptr<Tiny> make_tiny(const TinyConfig& config, const ModelSpec& spec) {
  const auto [input, output] = one_to_one("tiny", spec);
  return std::make_shared<Tiny>(config, input, classes_of("tiny", output));
}

const bool tiny_registered = Models::global().add<TinyConfig>("tiny", "one hidden layer", make_tiny);

}  // namespace
}  // namespace phalanx
