// SPDX-License-Identifier: Apache-2.0
// Tokens of another text dataset, some of them hidden, for models that look in both directions (Devlin et al. 2019,
// BERT, arXiv:1810.04805, section 3.1). Input [n, t] int64; target [n, t] int64: the original token at the chosen
// positions, kIgnored at all others. Most chosen tokens become the mask token, some a random token, and some stay
// unchanged. The choice is drawn again in each epoch for training and once for testing. At least one token of each
// sample is chosen, never padding.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "datasets/batch_memory.h"
#include "datasets/combined/nested_dataset.h"
#include "datasets/combined/redrawn.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct MaskedConfig {
  NestedDataset of;
  double share = 0.15;
  double random = 0.1;
  double kept = 0.1;
  std::int64_t mask = -1;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset of text");
    v("share", share, "share of the tokens that are chosen", {.min = 0, .max = 1, .exclusive = true});
    v("random", random, "share of the chosen tokens that become a random token", config::between(0, 1));
    v("kept", kept, "share of the chosen tokens that stay as they are", config::between(0, 1));
    v("mask", mask, "token that replaces the other chosen ones; -1: a new token, after all existing ones",
      config::at_least(-1));
    v("seed", seed, "random seed that chooses the hidden tokens");
  }
};

class MaskedTokens final : public Dataset {
 public:
  // If `fixed`, hides the same tokens in every epoch.
  MaskedTokens(const MaskedConfig& config, std::shared_ptr<const Dataset> of, bool fixed)
      : config_(config),
        of_(std::move(of)),
        fixed_(fixed),
        tokens_(of_->spec().inputs.at(0).classes),
        mask_(config.mask < 0 ? tokens_ : config.mask) {
    const auto classes = std::max(tokens_, mask_ + 1);
    spec_ = language_samples(of_->spec().inputs[0].shape[0], classes, /*padded=*/true);
    spec_.targets[0].name = "hidden_tokens";
    spec_.task = "masked_language_modelling";
  }

  std::int64_t size() const override { return of_->size(); }
  const SampleSpec& spec() const override { return spec_; }
  bool samples_overlap() const override { return of_->samples_overlap(); }
  std::int64_t length(std::int64_t index) const override { return of_->length(index); }

  bool varies() const override { return !fixed_ || of_->varies(); }

  std::shared_ptr<const Dataset> unchanged() const override {
    return fixed_ ? nullptr : std::make_shared<const MaskedTokens>(config_, of_, /*fixed=*/true);
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    of_->gather(indices, seed, batch);
    const auto all = spec_.inputs[0].shape[0];
    auto* input = batch.inputs.at(0).data_ptr<std::int64_t>();
    auto* target = batch.targets.at(0).data_ptr<std::int64_t>();
    const auto stream = seed_of_draws(config_.seed, fixed_, seed);
    for (const auto index : indices) {
      const auto length = of_->length(index);
      hide({input, static_cast<std::size_t>(length < 0 ? all : length)}, target,
           RandomStream(mix(stream, static_cast<std::uint64_t>(index))));
      input += all;
      target += all;
    }
  }

 private:
  // Hides tokens of one sample. `tokens` has no padding; `target` has the full length of spec().
  void hide(std::span<std::int64_t> tokens, std::int64_t* target, RandomStream draw) const {
    std::fill_n(target, spec_.targets[0].shape[0], kIgnored);
    const auto surely = draw.below(tokens.size());
    bool any = false;
    const auto choose = [&](std::size_t i) {
      any = true;
      target[i] = tokens[i];
      const double what = draw.between(0, 1);
      if (what < config_.random) {
        tokens[i] = static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(tokens_)));
      } else if (what >= config_.random + config_.kept) {
        tokens[i] = mask_;
      }
    };
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (draw.between(0, 1) < config_.share) choose(i);
    }
    if (!any) choose(surely);
  }

  MaskedConfig config_;
  std::shared_ptr<const Dataset> of_;
  bool fixed_;
  std::int64_t tokens_, mask_;
  SampleSpec spec_;
};

Splits make_masked(const MaskedConfig& config) {
  Splits splits = config.of.make("of");
  const auto& spec = splits.train->spec();
  if (spec.task != "language_modelling" || spec.inputs.size() != 1 || spec.inputs[0].shape.size() != 1) {
    throw ConfigError(
        "dataset.of: masked_tokens hides tokens of a text, but the samples of this dataset are for task " +
        (spec.task.empty() ? "none" : spec.task) + "; use a dataset of text, such as text or tokens");
  }
  if (config.random + config.kept > 1) {
    throw ConfigError("dataset.random and dataset.kept are shares of the same tokens: their sum is more than 1");
  }
  return redrawn<MaskedTokens>(config, std::move(splits));
}

const bool masked_tokens_registered = add_dataset_without_files<MaskedConfig>(
    "masked_tokens", "text of another dataset, with some tokens hidden", make_masked);

}  // namespace
}  // namespace phalanx
