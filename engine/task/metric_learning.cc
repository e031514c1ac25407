// SPDX-License-Identifier: Apache-2.0
// Metric learning: embeddings that are close to each other for samples of the same class. For samples with several
// members, as in the datasets pairs and triplets with targets [members] int64, outputs are [members, width]. For single
// samples with one class each, outputs are [width].
#include <memory>
#include <utility>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct MetricLearningConfig {
  std::int64_t width = 32;

  template <class V>
  void visit(V& v) {
    v("width", width, "number of values in an embedding", config::between(1, 1 << 20));
  }
};

class MetricLearning final : public Task {
 public:
  MetricLearning(const MetricLearningConfig& config, const SampleSpec& sample, std::shared_ptr<const Loss> loss)
      : loss_(std::move(loss)) {
    const bool classes = !sample.targets.empty() && sample.targets[0].classes > 0 && !sample.targets[0].ignored;
    if (!classes || sample.targets[0].shape.size() > 1) {
      throw ConfigError(
          "task metric_learning needs the class of each member of a sample as target; the dataset has "
          "none. The datasets pairs and triplets make such samples of those of classification");
    }
    auto shape = sample.targets[0].shape;
    members_ = shape.empty() ? 1 : shape[0];
    if (!loss_ && members_ != 2 && members_ != 3) {
      throw ConfigError(
          "task metric_learning has no loss for samples that are neither pairs nor triplets; name one, as "
          "loss: {name: triplet, mining: batch_hard}");
    }
    if (!loss_) loss_ = Losses::Choice(members_ == 2 ? "contrastive" : "triplet").make();
    shape.push_back(config.width);
    model_ = {.inputs = sample.inputs, .outputs = {{.name = "embeddings", .shape = std::move(shape)}}};
  }

  const ModelSpec& model() const override { return model_; }

  at::Tensor mean_loss(const Tensors& predictions, const Batch& batch) const override {
    return loss_->mean(predictions.at(0), batch.targets.at(0));
  }

  std::vector<MeterConfig> meters() const override {
    std::vector<MeterConfig> meters{{Meters::Choice("loss")}, {Meters::Choice("retrieval")}};
    if (members_ > 1) meters.push_back({Meters::Choice("verification")});
    return meters;
  }
  Goal goal() const override { return {.metric = "recall_at_1", .highest = true}; }

 private:
  std::int64_t members_ = 1;
  ModelSpec model_;
  std::shared_ptr<const Loss> loss_;
};

const bool metric_learning_registered = Tasks::global().add<MetricLearningConfig>(
    "metric_learning", "embed samples so that those of one class are near each other",
    [](const MetricLearningConfig& config, const SampleSpec& sample, std::shared_ptr<const Loss> loss) {
      return std::make_unique<MetricLearning>(config, sample, std::move(loss));
    });

}  // namespace
}  // namespace phalanx
