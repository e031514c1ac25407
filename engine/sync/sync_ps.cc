// Synchronous SGD through parameter servers: in every step the servers sum the gradients of all ranks, which read the
// sum and divide it by their number. The result is that of all_reduce, but for the order of additions, which is that of
// arrival. Each step's sum begins anew (rule sum_of_clock). Two tables take turns: a rank that is done with one step
// adds to the next sum, while others still read this one.
// Wire: the gradients' bytes to the servers and back, per rank and step; a server of P ranks receives and sends P times
// its share.
#include <ATen/core/grad_mode.h>

#include <array>
#include <memory>
#include <vector>

#include "engine/sync/initial_values.h"
#include "engine/sync/parameter_service.h"
#include "engine/sync/replicated_synchronizer.h"
#include "engine/sync/synchronizers.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class SyncPs final : public GradientSynchronizer {
 public:
  explicit SyncPs(const SyncContext& context)
      : group_(context.group),
        weight_(context.weight),
        service_(context),
        sums_{BucketTables(service_, contract("even")), BucketTables(service_, contract("odd"))} {}

  std::vector<Slice> attach(const FlatParameters& parameters, Cut) override {
    auto slices = broadcast_all(parameters, *group_);
    gradients_.clear();
    for (const auto& bucket : parameters.buckets()) gradients_.push_back(bucket.gradients);
    for (auto& sum : sums_) sum.attach(parameters);
    return slices;
  }

  void before_update(std::int64_t) override {
    const at::NoGradGuard no_grad;
    turn_ = 1 - turn_;
    auto works = sums_[turn_].exchange(gradients_, {.rule = 0, .scale = weight_, .tick = true});
    wait_all(works);
    for (auto& gradient : gradients_) gradient.div_(group_->size());
  }

  Figures figures() const override { return sums_[0].figures(); }

 private:
  static BucketTables::Contract contract(const char* name) {
    return {.name = name, .rules = {"sum_of_clock"}, .staleness = 0};
  }

  CommunicatorPtr group_;
  double weight_;  // of this rank's gradients
  ParameterService service_;
  std::array<BucketTables, 2> sums_;  // of steps of even and of odd numbers
  std::size_t turn_ = 0;
  std::vector<at::Tensor> gradients_;
};

const bool registered = Synchronizers::global().add<NoFields>(
    "sync_ps", "synchronous: parameter servers average the gradients",
    StrategyTraits{.reduces_gradients = true, .parameter_servers = true, .intra_level = true, .inter_level = true},
    [](const NoFields&, const SyncContext& context) { return std::make_unique<SyncPs>(context); });

}  // namespace
}  // namespace phalanx
