// Local SGD (Stich 2019, Local SGD Converges Fast and Communicates Little): every rank updates its own replica with its
// own gradients, and every k-th step the replicas become their mean. Post-local SGD (Lin et al. 2020, Don't Use Large
// Mini-Batches, Use Local SGD, section 3): the first `warmup_steps` are synchronous, by the mean of the gradients.
// What the optimizer remembers (momentum) can be averaged with the parameters, forgotten, or left as it is on each rank
// (Wang et al. 2020, SlowMo, section 2, compares them). After the last step the replicas are equal.
// Wire: 2 (P - 1) / P of the parameters' bytes per rank and k steps, and of the state's if that is averaged.
#include <ATen/core/grad_mode.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/sync/parameter_average.h"
#include "engine/sync/synchronizer.h"

namespace phalanx {
namespace {

struct LocalSgdConfig {
  std::int64_t every = 8;
  std::int64_t warmup_steps = 0;
  std::string momentum = "local";
  Compressors::Choice compression{"none"};

  template <class V>
  void visit(V& v) {
    v("every", every, "steps from one average of the parameters to the next", config::at_least(1));
    v("warmup_steps", warmup_steps, "first steps, which average gradients instead", config::at_least(0));
    v("momentum", momentum, "what happens to the optimizer's state when parameters are averaged",
      config::one_of({"local", "average", "reset"}));
    v("compression", compression, "how parameters are made smaller on the wire");
  }
};

class LocalSgd final : public Synchronizer {
 public:
  LocalSgd(const LocalSgdConfig& config, const Replicas& replicas)
      : config_(config), group_(replicas.group), average_(replicas.group, config.compression) {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    slices_ = broadcast_all(parameters, *group_);
    average_.attach(parameters);
    state_.clear();
    return slices_;
  }

  void attach_state(const std::vector<at::Tensor>& state) override { state_ = state; }

  void before_update(std::int64_t step) override {
    if (step >= config_.warmup_steps) return;
    std::vector<Work> works;
    for (auto& slice : slices_) works.push_back(group_->all_reduce(slice.gradients, Reduction::kMean));
    wait_all(works);
  }

  void after_update(std::int64_t step) override {
    apart_ = step >= config_.warmup_steps;
    if (apart_ && (step + 1 - config_.warmup_steps) % config_.every == 0) average();
  }

  bool replicas_equal() const override { return !apart_; }

  void finish() override {
    if (apart_) average();
  }

  Memory memory() override { return average_.memory(); }

  Figures figures() const override { return average_.figures(); }

 private:
  void average() {
    const at::NoGradGuard no_grad;
    average_.average();
    for (auto& tensor : state_) {
      if (config_.momentum == "average") group_->all_reduce(tensor, Reduction::kMean).wait();
      if (config_.momentum == "reset") tensor.zero_();
    }
    apart_ = false;
  }

  LocalSgdConfig config_;
  CommunicatorPtr group_;
  ParameterAverage average_;
  std::vector<Slice> slices_;
  std::vector<at::Tensor> state_;
  bool apart_ = false;  // whether the replicas may differ
};

const bool registered = Synchronizers::global().add<LocalSgdConfig>(
    "local_sgd", "every rank for itself; the mean of the parameters every k-th step",
    [](const LocalSgdConfig& config, const Replicas& replicas) {
      return std::make_unique<LocalSgd>(config, replicas);
    });

}  // namespace
}  // namespace phalanx
