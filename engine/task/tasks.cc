// SPDX-License-Identifier: Apache-2.0
// The tasks of supervised learning, with one output, one target, and a loss between the two.
#include <ATen/TensorOperators.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Describes one of the tasks. `output` throws ConfigError for unsuitable samples.
struct Kind {
  std::string name;
  std::string loss;  // default
  std::vector<std::string> meters;
  Goal goal;
  TensorSpec (*output)(const std::string& task, const SampleSpec& sample);
  bool scores_second = false;  // models return [n, classes, ...], as convolutions do
  bool target_is_input = false;
};

[[noreturn]] void refuse(const std::string& task, const std::string& needs) {
  throw ConfigError("task " + task + " needs " + needs +
                    "; the dataset has none. task: auto chooses one that suits it");
}

const TensorSpec& target_of(const std::string& task, const SampleSpec& sample) {
  if (sample.targets.empty()) refuse(task, "a target for each sample");
  return sample.targets.front();
}

const TensorSpec& classes_of(const std::string& task, const SampleSpec& sample) {
  const auto& target = target_of(task, sample);
  if (target.classes == 0) refuse(task, "class numbers as targets");
  return target;
}

// A score for each class at every place where the target has a class index.
TensorSpec scores_last(const std::string& task, const SampleSpec& sample) {
  const auto& target = classes_of(task, sample);
  auto shape = target.shape;
  shape.push_back(target.classes);
  return {.name = "scores", .shape = std::move(shape)};
}

TensorSpec scores_of_tokens(const std::string& task, const SampleSpec& sample) {
  if (classes_of(task, sample).shape.size() != 1) refuse(task, "a row of tokens as target");
  return scores_last(task, sample);
}

TensorSpec scores_of_pixels(const std::string& task, const SampleSpec& sample) {
  const auto& target = classes_of(task, sample);
  if (target.shape.size() != 2) refuse(task, "class numbers [height, width] as targets");
  return {.name = "scores", .shape = {target.classes, target.shape[0], target.shape[1]}};
}

TensorSpec numbers(const std::string& task, const SampleSpec& sample) {
  const auto& target = target_of(task, sample);
  if (!c10::isFloatingType(target.dtype)) refuse(task, "numbers as targets");
  return {.name = "prediction", .shape = target.shape};
}

TensorSpec logit(const std::string& task, const SampleSpec& sample) {
  const auto& target = target_of(task, sample);
  if (!target.shape.empty() || !c10::isFloatingType(target.dtype)) refuse(task, "one number, 0 or 1, as target");
  return {.name = "logit"};
}

TensorSpec scores_of_items(const std::string& task, const SampleSpec& sample) {
  const auto& target = target_of(task, sample);
  if (target.shape.size() != 1 || !c10::isFloatingType(target.dtype)) refuse(task, "relevances [items] as targets");
  return {.name = "scores", .shape = target.shape};
}

TensorSpec as_the_input(const std::string& task, const SampleSpec& sample) {
  if (!c10::isFloatingType(sample.inputs.front().dtype)) refuse(task, "numbers as inputs");
  return {.name = "reconstruction", .shape = sample.inputs.front().shape};
}

class Supervised final : public Task {
 public:
  Supervised(const Kind& kind, const SampleSpec& sample, std::shared_ptr<const Loss> loss)
      : kind_(kind),
        model_{.inputs = sample.inputs, .outputs = {kind.output(kind.name, sample)}},
        ignored_(!sample.targets.empty() && sample.targets.front().ignored),
        loss_(loss ? std::move(loss) : Losses::Choice(kind.loss).make()) {}

  const ModelSpec& model() const override { return model_; }

  std::vector<TensorSpec> targets(const SampleSpec& sample) const override {
    if (!kind_.target_is_input) return sample.targets;
    TensorSpec target = sample.inputs.front();
    target.name = "target";
    return {target};
  }

  Tensors predictions(Tensors outputs) const override {
    if (kind_.scores_second) outputs.at(0) = outputs.at(0).movedim(1, -1);
    return outputs;
  }

  bool takes_16_bits() const override { return loss_->takes_16_bits(); }

  at::Tensor mean_loss(const Tensors& predictions, const Batch& batch) const override {
    return loss_->mean(predictions.at(0), batch.targets.at(0));
  }

  at::Tensor mean_loss_of_parts(Tensors predictions, const VocabularyShard& parts, const Batch& batch) const override {
    return loss_->mean_of_parts(predictions.at(0), parts, batch.targets.at(0));
  }

  void prepare(Batch& batch) const override {
    if (kind_.target_is_input) batch.targets = {batch.inputs.at(0)};
    if (!ignored_) return;
    const at::Tensor counted = batch.targets.at(0).ne(kIgnored);
    batch.row_weights = (counted.dim() > 1 ? counted.flatten(1).sum(1) : counted).to(at::kDouble);
  }

  std::vector<MeterConfig> meters() const override {
    std::vector<MeterConfig> meters;
    for (const auto& name : kind_.meters) meters.push_back({Meters::Choice(name)});
    return meters;
  }
  Goal goal() const override { return kind_.goal; }

 private:
  Kind kind_;
  ModelSpec model_;
  bool ignored_;
  std::shared_ptr<const Loss> loss_;
};

bool add(const std::string& help, const Kind& kind) {
  return Tasks::global().add<NoFields>(
      kind.name, help, [kind](const NoFields&, const SampleSpec& sample, std::shared_ptr<const Loss> loss) {
        return std::make_unique<Supervised>(kind, sample, std::move(loss));
      });
}

const Goal kMostAccurate{.metric = "accuracy", .highest = true};
const Goal kHighestAuc{.metric = "auc", .highest = true};
const Goal kLeastLoss{.metric = "loss", .highest = false};

const bool classification = add("predict which of several classes a sample belongs to", {.name = "classification",
                                                                                         .loss = "cross_entropy",
                                                                                         .meters = {"loss", "accuracy"},
                                                                                         .goal = kMostAccurate,
                                                                                         .output = scores_last});

const bool binary_classification =
    add("predict how likely an event is, such as a click", {.name = "binary_classification",
                                                            .loss = "binary_cross_entropy",
                                                            .meters = {"loss", "auc"},
                                                            .goal = kHighestAuc,
                                                            .output = logit});

const bool language_modelling =
    add("predict each token from those before it", {.name = "language_modelling",
                                                    .loss = "cross_entropy",
                                                    .meters = {"loss", "accuracy", "perplexity"},
                                                    .goal = kLeastLoss,
                                                    .output = scores_of_tokens});

const bool masked_language_modelling = add("predict the tokens that were masked; targets are ignored elsewhere",
                                           {.name = "masked_language_modelling",
                                            .loss = "cross_entropy",
                                            .meters = {"loss", "accuracy", "perplexity"},
                                            .goal = kLeastLoss,
                                            .output = scores_of_tokens});

const bool regression =
    add("predict numbers",
        {.name = "regression", .loss = "mse", .meters = {"loss", "mse"}, .goal = kLeastLoss, .output = numbers});

const bool segmentation = add("predict the class of each pixel", {.name = "segmentation",
                                                                  .loss = "cross_entropy",
                                                                  .meters = {"loss", "accuracy"},
                                                                  .goal = kMostAccurate,
                                                                  .output = scores_of_pixels,
                                                                  .scores_second = true});

const bool reconstruction = add("reproduce the input", {.name = "reconstruction",
                                                        .loss = "mse",
                                                        .meters = {"loss", "mse"},
                                                        .goal = kLeastLoss,
                                                        .output = as_the_input,
                                                        .target_is_input = true});

const bool ranking =
    add("score the items of a query so that relevant ones come first", {.name = "ranking",
                                                                        .loss = "list_net",
                                                                        .meters = {"loss", "ndcg"},
                                                                        .goal = {.metric = "ndcg_at_10"},
                                                                        .output = scores_of_items});

const bool automatic = Tasks::global().add<NoFields>(
    "auto", "the task that the dataset is made for",
    [](const NoFields&, const SampleSpec& sample, std::shared_ptr<const Loss> loss) {
      if (sample.task.empty()) throw ConfigError("task: auto cannot choose, since the dataset names no task; name one");
      return Tasks::Choice(sample.task).make(sample, std::move(loss));
    });

}  // namespace
}  // namespace phalanx
