// SPDX-License-Identifier: Apache-2.0
#include "phalanx/optimizers.h"

#include "engine/optim/optimizer.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"
#include "phalanx/internal/fused_updates.h"
#include "phalanx/internal/serialized.h"
#include "phalanx/internal/strategy_section.h"

namespace phalanx {
namespace {

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const FusedOptimizerOptions& options) {
  if (options.clip_norm < 0 || options.clip_value < 0) {
    throw ConfigError("FusedOptimizer: clip_norm and clip_value must not be negative");
  }
  const auto choice =
      config::load_as<Optimizers::Choice>("optimizer", section_text(name, options.keys), "FusedOptimizerOptions");
  return choice.make({});
}

}  // namespace

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer, World& world, int root) {
  if (world.size() == 1) return;
  const bool gives = world.rank() == root;
  const std::string bytes = broadcast_text(gives ? to_bytes(optimizer) : "", world.communicator(), root);
  if (!gives) from_bytes(optimizer, bytes);
}

FusedOptimizer::FusedOptimizer(DistributedDataParallel& ddp, const std::string& name, const Options& options)
    : updates_(std::make_unique<Updates>(*ddp.replica_, make_optimizer(name, options),
                                         ClipLimits{.norm = options.clip_norm, .value = options.clip_value})) {}

FusedOptimizer::~FusedOptimizer() = default;

void FusedOptimizer::step() { updates_->step(); }
void FusedOptimizer::zero_grad() { updates_->exchange().zero_gradients(); }
double FusedOptimizer::gradient_norm() const { return updates_->optimizer().norm(); }
double FusedOptimizer::learning_rate() const { return updates_->optimizer().learning_rate(); }
void FusedOptimizer::set_learning_rate(double rate) { updates_->optimizer().set_learning_rate(rate); }
std::int64_t FusedOptimizer::steps() const { return updates_->optimizer().updates(); }

}  // namespace phalanx
