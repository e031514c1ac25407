#include "engine/sync/pushed_gradients.h"

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

// What the run takes for the optimizer: it gives the gradients away, as whatever is around it has left them.
class PushedGradients::Taker final : public Optimizer {
 public:
  explicit Taker(PushedGradients& strategy) : strategy_(strategy), learning_rate_(strategy.options_.learning_rate) {}

  void attach(std::vector<Slice> slices) override {
    slices_ = std::move(slices);
    updates_ = 0;
  }

  void update() override {
    ++updates_;
    strategy_.take(slices_, learning_rate_);
    for (auto& slice : slices_) slice.gradients.zero_();
  }

  double learning_rate() const override { return learning_rate_; }
  void set_learning_rate(double rate) override { learning_rate_ = rate; }
  std::int64_t updates() const override { return updates_; }
  void set_updates(std::int64_t updates) override { updates_ = updates; }

 private:
  PushedGradients& strategy_;
  double learning_rate_;
  std::vector<Slice> slices_;
  std::int64_t updates_ = 0;
};

PushedGradients::PushedGradients(const Options& options, const SyncContext& context)
    : ServedSynchronizer(context, {.name = "centre", .rules = {options.rule}, .staleness = options.staleness}),
      options_(options),
      weight_(options.synchronous ? context.weight : 1),
      progress_(at::zeros({2}, at::kDouble)) {}

std::unique_ptr<Optimizer> PushedGradients::make_optimizer() { return std::make_unique<Taker>(*this); }

void PushedGradients::begin(const std::vector<at::Tensor>& values) {
  sums_.clear();
  for (const auto& value : values) sums_.push_back(at::zeros_like(value));
  progress_.zero_();
}

StateDict PushedGradients::own_state() {
  if (options_.every == 1) return {};  // nothing stays from step to step
  StateDict all{{"progress", progress_}};
  for (std::size_t i = 0; i < sums_.size(); ++i) all.push_back({"gradients/" + std::to_string(i), sums_[i]});
  return all;
}

void PushedGradients::take(const std::vector<Slice>& slices, double learning_rate) {
  const at::NoGradGuard no_grad;
  if (slices.size() != sums_.size()) throw std::logic_error("the slices are not those of the strategy");
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].add_(slices[i].gradients);
  progress_.copy_(at::tensor({progress_[0].item<double>() + 1, learning_rate}, at::kDouble));
}

void PushedGradients::after_update(std::int64_t step) {
  const bool none = progress_[0].item<double>() == 0;  // where gradients were left out, on all ranks
  if (none || (step + 1) % options_.every != 0) return;
  const at::NoGradGuard no_grad;
  const auto [factor, options] = mean_since_last();
  tables_.exchange(
      sums_, options, [this, factor = factor](std::size_t i) { scale(sums_[i], factor); },
      [this](std::size_t i) {
        values_[i].copy_(sums_[i]);
        sums_[i].zero_();
      });
}

PushedGradients::Mean PushedGradients::mean_since_last() {
  const double factor = weight_ / progress_[0].item<double>(), rate = progress_[1].item<double>();
  progress_.zero_();
  return {factor, {.rule = 0, .scale = rate, .tick = true}};
}

void PushedGradients::send_rest() {
  if (progress_[0].item<double>() == 0) return;
  const auto [factor, options] = mean_since_last();
  for (const auto& sum : sums_) scale(sum, factor);
  auto works = tables_.push(sums_, options);
  wait_all(works);
}

// What a rank begins with counts as read: gradients are as late as updates came after it.
void PushedGradients::servers_were_set() { read_what_was_set(); }

}  // namespace phalanx
