// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/evaluate.h"

#include <ATen/ops/full.h>

#include <optional>
#include <utility>
#include <vector>

#include "engine/build/load_model.h"
#include "engine/build/split_loader.h"
#include "engine/build/training_step.h"
#include "engine/config/defaults.h"
#include "engine/config/meter_check.h"
#include "engine/experiment/evaluation.h"
#include "engine/experiment/predictions.h"
#include "engine/step/plain_step.h"
#include "framework/base/error.h"
#include "models/weights_layout.h"

namespace phalanx {
namespace {

struct Stopped {};  // thrown on all ranks at the same batch if one of them was asked to stop

}  // namespace

std::optional<EvaluationResult> evaluate_weights(const ExperimentConfig& config, const ExperimentContext& context,
                                                 const EvaluationOptions& options) {
  const auto& sample = context.splits.test->spec();
  const auto task = config.task.make(sample, config.loss.make());
  task->take_turn(0);
  ExperimentConfig complete = with_defaults_of(*task, config);
  check_meters(*task, sample, complete);
  complete.determinism = "run";  // on any number of ranks, so without virtual shards
  UnreadableSamples unreadable(complete.loader, with_held_out(context.splits, config));
  const Splits& splits = unreadable.splits();
  if (options.split == "validation" && !splits.validation) {
    throw ConfigError("there is no validation split: the dataset has none, and evaluate.validation is not set");
  }
  const auto model = load_model(complete, task->model(), options.weights);
  move_weights(*model, context.device);
  PlainStep step(*model, *task, {.arithmetic = arithmetic_of(complete.train, task->model())});
  const Mesh mesh(context.world);
  Evaluation evaluation(complete, splits, {[&](Batch& batch) { task->prepare(batch); }, context.device}, step, mesh);
  std::optional<Predictions> predictions;
  if (!options.predictions.empty()) {
    predictions.emplace(task->model(), task->targets(sample));
    evaluation.evaluator().on(Event::kForwardCriterion, [&](State& state) { predictions->add(state); });
  }
  evaluation.evaluator().on(Event::kSample, [&](State&) {
    const at::Tensor asked = at::full({1}, context.stop_asked() ? 1 : 0, at::kLong);
    context.world->all_reduce(asked, Reduction::kMax).wait();
    if (asked.item<std::int64_t>() != 0) throw Stopped{};
  });
  unreadable.start();
  EvaluationResult result{.samples = evaluation.samples(options.split)};
  try {
    result.metrics = evaluation.run(options.split, {});
  } catch (const Stopped&) {
    return std::nullopt;
  }
  if (evaluation.diverged()) throw_diverged(options.split);
  result.unreadable = unreadable.count(*context.world);
  if (predictions) predictions->save(options.predictions, *context.world);
  context.world->barrier().wait();
  return result;
}

}  // namespace phalanx
