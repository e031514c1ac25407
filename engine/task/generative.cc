// SPDX-License-Identifier: Apache-2.0
// Tasks for models that generate samples like the samples of a dataset. Samples are a tensor of numbers, with noise as
// a second input, as in the dataset with_noise.
#include <ATen/TensorOperators.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mse_loss.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Returns the tensor that the model must imitate. Throws ConfigError for other samples.
const TensorSpec& imitated(const char* task, const SampleSpec& sample) {
  const bool numbers = sample.inputs.size() == 2 && c10::isFloatingType(sample.inputs[0].dtype) &&
                       c10::isFloatingType(sample.inputs[1].dtype) && sample.inputs[1].shape.size() == 1;
  if (numbers) return sample.inputs[0];
  throw ConfigError(std::string("task ") + task +
                    " needs samples of numbers with noise; use the dataset {name: with_noise, of: {name: ...}}");
}

void refuse_loss(const std::string& task, const std::shared_ptr<const Loss>& loss) {
  if (loss) throw ConfigError("loss: task " + task + " has a loss function of its own; remove it");
}

struct VariationalConfig {
  std::string likelihood = "bernoulli";
  double beta = 1;

  template <class V>
  void visit(V& v) {
    v("likelihood", likelihood,
      "distribution of the sample, given its code. bernoulli: numbers from 0 to 1; gaussian: any numbers, with "
      "deviation 1",
      config::one_of({"bernoulli", "gaussian"}));
    v("beta", beta, "weight of the divergence of codes from noise", config::at_least(0));
  }
};

// The negative evidence lower bound of variational autoencoders (Kingma and Welling 2014, Auto-Encoding Variational
// Bayes, arXiv:1312.6114, section 2.3 and appendix B), with the beta of Higgins (2017, beta-VAE), in nats per sample.
// The constant of gaussian likelihoods is omitted.
class Variational final : public Task {
 public:
  Variational(const VariationalConfig& config, const SampleSpec& sample)
      : bernoulli_(config.likelihood == "bernoulli"), beta_(config.beta) {
    const auto& input = imitated("variational", sample);
    const auto code = sample.inputs[1].shape;
    model_ = {.inputs = sample.inputs,
              .outputs = {{.name = bernoulli_ ? "logits" : "reconstruction", .shape = input.shape},
                          {.name = "mean", .shape = code},
                          {.name = "log_variance", .shape = code}}};
  }

  const ModelSpec& model() const override { return model_; }

  std::vector<TensorSpec> targets(const SampleSpec& sample) const override {
    TensorSpec target = sample.inputs.front();
    target.name = "target";
    return {target};
  }
  void prepare(Batch& batch) const override { batch.targets = {batch.inputs.at(0)}; }

  void check_values(const Batch& batch) const override {
    const at::Tensor samples = batch.targets.at(0);
    if (!bernoulli_ || samples.numel() == 0) return;
    const auto [least, most] = at::aminmax(samples);
    const double from = least.item<double>(), to = most.item<double>();
    if (from >= 0 && to <= 1) return;
    throw ConfigError("task.likelihood: bernoulli is for samples from 0 to 1, but those of the dataset reach from " +
                      format_text("%.4g to %.4g", from, to) +
                      "; use likelihood: gaussian, or remove what shifts them, such as normalization");
  }

  at::Tensor mean_loss(const Tensors& predictions, const Batch& batch) const override {
    const auto &made = predictions.at(0), &mean = predictions.at(1), &log_variance = predictions.at(2);
    const auto& target = batch.targets.at(0);
    const at::Tensor misfit = bernoulli_
                                  ? at::binary_cross_entropy_with_logits(made, target, {}, {}, at::Reduction::Sum)
                                  : at::mse_loss(made, target, at::Reduction::Sum) / 2;
    const at::Tensor divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum() / 2;
    return (misfit + beta_ * divergence) / static_cast<double>(target.size(0));
  }

  std::vector<MeterConfig> meters() const override { return {{Meters::Choice("loss")}}; }
  Goal goal() const override { return {.metric = "loss", .highest = false}; }

 private:
  bool bernoulli_;
  double beta_;
  ModelSpec model_;
};

// Trains a generator and a discriminator in turns (Goodfellow et al. 2014, Generative Adversarial Nets,
// arXiv:1406.2661, section 3): the discriminator learns to distinguish samples from the generator's output, and the
// generator learns, with the non-saturating loss, to make output that is classified as samples. The loss in tests is
// the discriminator's, which is 2 log 2 = 1.386 if it cannot distinguish them.
class Adversarial final : public Task {
 public:
  explicit Adversarial(const SampleSpec& sample) {
    const auto& input = imitated("adversarial", sample);
    model_ = {
        .inputs = sample.inputs,
        .outputs = {{.name = "score_of_sample"}, {.name = "score_of_made"}, {.name = "made", .shape = input.shape}}};
  }

  const ModelSpec& model() const override { return model_; }

  at::Tensor mean_loss(const Tensors& predictions, const Batch&) const override {
    const auto is_taken_for = [](const at::Tensor& score, double target) {
      return at::binary_cross_entropy_with_logits(score, at::full_like(score, target));
    };
    if (turn_ == kGenerator) return is_taken_for(predictions.at(1), 1);
    return is_taken_for(predictions.at(0), 1) + is_taken_for(predictions.at(1), 0);
  }

  std::vector<MeterConfig> meters() const override { return {{Meters::Choice("loss")}}; }
  Goal goal() const override { return {.metric = "loss", .highest = false}; }

  std::vector<Turn> turns() const override {
    return {{.name = "discriminator", .parameters = "^discriminator\\."},
            {.name = "generator", .parameters = "^generator\\."}};
  }
  void take_turn(std::size_t turn) override { turn_ = turn; }

 private:
  static constexpr std::size_t kGenerator = 1;

  ModelSpec model_;
  std::size_t turn_ = 0;
};

const bool variational = Tasks::global().add<VariationalConfig>(
    "variational", "reproduce the input from a code that is nearly noise: vae",
    [](const VariationalConfig& config, const SampleSpec& sample, std::shared_ptr<const Loss> loss) {
      refuse_loss("variational", loss);
      return std::make_unique<Variational>(config, sample);
    });

const bool adversarial = Tasks::global().add<NoFields>(
    "adversarial",
    "in turn, make samples from noise that a discriminator takes for real, and train it to tell them apart: dcgan",
    [](const NoFields&, const SampleSpec& sample, std::shared_ptr<const Loss> loss) {
      refuse_loss("adversarial", loss);
      return std::make_unique<Adversarial>(sample);
    });

}  // namespace
}  // namespace phalanx
