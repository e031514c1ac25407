// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/evaluation.h"

#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>

#include <cmath>
#include <string>
#include <utility>

#include "engine/build/split_loader.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {

Evaluation::Evaluation(const ExperimentConfig& config, const Splits& splits, const Preparation& preparation, Step& step,
                       const Mesh& mesh)
    : guarded_(config.watch.nan_guard.every_steps > 0), evaluator_(step), mesh_(mesh), meters_(config.evaluate.meters) {
  const auto add = [&](const char* name, const std::shared_ptr<const Dataset>& split) {
    if (!split) return;
    loaders_[name] = preparation.of(
        make_split_loader(split, config.evaluate.global_batch_size, config, SplitUse::kTesting, *mesh_.samples()));
    samples_[name] = split->size();
  };
  add("validation", splits.validation);
  add("test", splits.test);
  evaluator_.on(Event::kForwardCriterion, HookPhase::kMeasure, [this](State& state) {
    meters_.add(state.batch, state.result);
    look_at(state.result);
  });
}

Metrics Evaluation::run(const std::string& split, const State& state) {
  not_finite_ = at::Tensor();
  evaluator_.run(*loaders_.at(split), {.epoch = state.epoch, .step = state.step});
  diverged_ = guarded_ && any_not_finite();
  Metrics metrics = meters_.take(*mesh_.control(kBatchAxes));
  warn_of(split, metrics);
  return metrics;
}

// Does not wait for the device. any_not_finite() waits for it once.
void Evaluation::look_at(const Step::Result& result) {
  if (!guarded_ || result.elsewhere()) return;
  const at::Tensor bad = at::isfinite(result.loss.detach()).all().logical_not();
  not_finite_ = not_finite_.defined() ? not_finite_.logical_or(bad) : bad;
}

bool Evaluation::any_not_finite() {
  const bool mine = not_finite_.defined() && not_finite_.item<bool>();
  const at::Tensor any = at::full({1}, mine ? 1 : 0, at::kLong);
  mesh_.control()->all_reduce(any, Reduction::kMax).wait();
  return any.item<std::int64_t>() != 0;
}

void Evaluation::warn_of(const std::string& split, const Metrics& metrics) {
  if (mesh_.control()->rank() != 0) return;
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value) || !warned_of_.insert(split + "/" + name).second) continue;
    const std::string text = "the " + name + " of the " + split + " split is " + std::to_string(value);
    log_warning() << text;
    standard_error().write("Warning: " + text + "\n");
  }
}

void throw_diverged(const std::string& split) {
  throw Error("the loss of the " + split +
              " split is not finite: look for values in its samples that are not finite, or for weights that have "
              "diverged (lower optimizer.lr or set train.clip_norm); watch.nan_guard: {every_steps: 0} only warns");
}

}  // namespace phalanx
