// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/pushed_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

void scale(const at::Tensor& sum, double factor) {
  if (factor != 1) sum.mul_(factor);
}

}  // namespace

// Replaces the run's optimizer: it passes the gradients to the strategy, after clipping and other decorators.
class PushedGradients::PushOptimizer final : public Optimizer {
 public:
  explicit PushOptimizer(PushedGradients& strategy)
      : strategy_(strategy), learning_rate_(strategy.options_.learning_rate) {}

  void attach(std::vector<Slice> slices) override {
    slices_ = std::move(slices);
    excluded_.clear();
    updates_ = 0;
  }

  void update() override {
    ++updates_;
    strategy_.take(slices_, excluded_, learning_rate_);
    for (auto& slice : slices_) slice.gradients.zero_();
  }

  void exclude(const std::set<std::string>& parameters) override { excluded_ = parameters; }
  double learning_rate() const override { return learning_rate_; }
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  std::int64_t updates() const override { return updates_; }
  void set_updates(std::int64_t updates) override { updates_ = updates; }

 private:
  PushedGradients& strategy_;
  double learning_rate_;
  std::vector<Slice> slices_;
  std::set<std::string> excluded_;
  std::int64_t updates_ = 0;
};

PushedGradients::PushedGradients(const Options& options, const StrategyContext& context)
    : ServerStrategy(context, {.name = "centre", .rules = {options.rule}, .staleness = options.staleness}),
      options_(options),
      weight_(options.synchronous ? context.weight : 1),
      progress_(at::zeros({2}, at::kDouble)) {}

std::unique_ptr<Optimizer> PushedGradients::make_optimizer() { return std::make_unique<PushOptimizer>(*this); }

void PushedGradients::begin(const std::vector<at::Tensor>& values) {
  sums_.clear(), used_.clear();
  for (const auto& value : values) sums_.push_back(at::zeros_like(value));
  for (const auto& segments : segments_) {
    used_.push_back(at::zeros({static_cast<std::int64_t>(segments.size())}, at::kLong));
  }
  progress_.zero_();
}

StateDict PushedGradients::own_state() {
  if (options_.every == 1) return {};  // no state is carried from step to step
  StateDict all{{"progress", progress_}};
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    all.push_back({"gradients/" + std::to_string(i), sums_[i]});
    all.push_back({"used/" + std::to_string(i), used_[i]});
  }
  return all;
}

void PushedGradients::take(const std::vector<Slice>& slices, const std::set<std::string>& unused,
                           double learning_rate) {
  const at::NoGradGuard no_grad;
  if (slices.size() != sums_.size()) throw std::logic_error("the slices are not those of the strategy");
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].add_(slices[i].gradients);
    auto* const used = used_[i].mutable_data_ptr<std::int64_t>();
    for (std::size_t j = 0; j < segments_[i].size(); ++j) used[j] |= unused.contains(segments_[i][j].name) ? 0 : 1;
  }
  progress_.copy_(at::tensor({progress_[0].item<double>() + 1, learning_rate}, at::kDouble));
}

void PushedGradients::after_update(std::int64_t step) {
  const bool none = progress_[0].item<double>() == 0;  // the update was skipped on all ranks
  if (none || (step + 1) % options_.every != 0) return;
  const at::NoGradGuard no_grad;
  const auto mean = mean_since_last();
  tables_.exchange(
      sums_, mean.options, [this, &mean](std::size_t i) { scale(sums_[i], mean.factor); },
      [this](std::size_t i) {
        values_[i].copy_(sums_[i]);
        sums_[i].zero_();
      },
      mean.unused);
}

// Padding between parameters is in no range: it is never read, so it may be updated.
std::vector<ps::ElementRanges> PushedGradients::take_unused() {
  std::vector<ps::ElementRanges> all;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    auto& ranges = all.emplace_back();
    const auto* const used = used_[i].const_data_ptr<std::int64_t>();
    for (std::size_t j = 0; j < segments_[i].size(); ++j) {
      const auto& segment = segments_[i][j];
      if (used[j] == 0 && segment.count > 0) ranges.push_back({segment.begin, segment.end()});
    }
    used_[i].zero_();
  }
  return all;
}

PushedGradients::Mean PushedGradients::mean_since_last() {
  const double factor = weight_ / progress_[0].item<double>(), rate = progress_[1].item<double>();
  progress_.zero_();
  return {factor, {.rule = 0, .scale = rate, .tick = true}, take_unused()};
}

void PushedGradients::send_rest() {
  if (progress_[0].item<double>() == 0) return;
  const auto mean = mean_since_last();
  for (const auto& sum : sums_) scale(sum, mean.factor);
  auto works = tables_.push(sums_, mean.options, mean.unused);
  wait_all(works);
}

// The values that a rank starts with count as read, so the staleness of its gradients is the number of later updates.
void PushedGradients::servers_were_set() { read_what_was_set(); }

}  // namespace phalanx
