// SPDX-License-Identifier: Apache-2.0
// A task for tests with one optimizer for each of two parts: a generator learns to make numbers like the dataset's, and
// a discriminator learns to distinguish the two (Goodfellow et al. 2014, Generative Adversarial Nets).
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <utility>

#include "engine/task/task.h"
#include "framework/base/config/no_fields.h"
#include "models/network.h"

namespace phalanx {
namespace {

class Adversaries final : public Network {
 public:
  Adversaries() {
    generator_ = register_module("generator", torch::nn::Linear(1, 1));
    first_ = register_module("discriminator1", torch::nn::Linear(1, 8));
    second_ = register_module("discriminator2", torch::nn::Linear(8, 1));
  }

  // Takes real samples and noise. Returns the scores of the samples, the scores of the samples that were generated from
  // the noise, and the generated samples.
  Tensors outputs(const Tensors& inputs) override {
    const at::Tensor made = generator_(inputs.at(1));
    return {score(inputs.at(0)), score(made), made};
  }

 private:
  at::Tensor score(const at::Tensor& x) { return second_(first_(x).tanh()); }

  torch::nn::Linear generator_{nullptr}, first_{nullptr}, second_{nullptr};
};

class AdversarialTask final : public Task {
 public:
  explicit AdversarialTask(const SampleSpec& sample)
      : model_{.inputs = sample.inputs,
               .outputs = {{.name = "score_of_real", .shape = {1}},
                           {.name = "score_of_made", .shape = {1}},
                           {.name = "made", .shape = {1}}}} {}

  const ModelSpec& model() const override { return model_; }

  at::Tensor mean_loss(const Tensors& predictions, const Batch&) const override {
    const auto wants = [](const at::Tensor& score, double target) {
      return at::binary_cross_entropy_with_logits(score, at::full_like(score, target));
    };
    if (turn_ == 1) return wants(predictions.at(1), 1);
    return wants(predictions.at(0), 1) + wants(predictions.at(1), 0);
  }

  std::vector<MeterConfig> meters() const override { return {{Meters::Choice("loss")}}; }
  Goal goal() const override { return {.metric = "loss", .highest = false}; }

  std::vector<Turn> turns() const override {
    return {{.name = "discriminator", .parameters = "^discriminator"},
            {.name = "generator", .parameters = "^generator"}};
  }
  void take_turn(std::size_t turn) override { turn_ = turn; }

 private:
  ModelSpec model_;
  std::size_t turn_ = 0;
};

const bool model_registered =
    Models::global().add<NoFields>("adversaries_under_test", "generator and discriminator",
                                   [](const NoFields&, const ModelSpec&) { return std::make_shared<Adversaries>(); });

const bool task_registered =
    Tasks::global().add<NoFields>("adversarial_under_test", "generator against discriminator",
                                  [](const NoFields&, const SampleSpec& sample, std::shared_ptr<const Loss>) {
                                    return std::make_unique<AdversarialTask>(sample);
                                  });

}  // namespace
}  // namespace phalanx
