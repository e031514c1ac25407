// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/gradient_norms.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/log.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

double norm_of(const std::vector<at::Tensor>& parts) {
  if (parts.empty()) return 0;
  return at::linalg_vector_norm(at::stack(parts).to(at::kCPU, at::kDouble)).item<double>();
}

}  // namespace

std::function<void(const at::Tensor&)> GradientNorms::observer() {
  if (config_.every_steps == 0) return {};
  return [this](const at::Tensor& gradients) { add(gradients); };
}

void GradientNorms::attach(Engine& engine, const FlatParameters& parameters, const CommunicatorPtr& replicas,
                           int world_rank) {
  if (config_.every_steps == 0) return;
  replicas_ = replicas;
  const at::Tensor all = at::zeros({replicas->size()}, at::kInt);
  replicas->all_gather(all, at::full({1}, world_rank, at::kInt)).wait();
  ranks_.assign(all.const_data_ptr<int>(), all.const_data_ptr<int>() + replicas->size());
  outliers_.emplace(replicas->size(), config_.threshold);
  engine.on(Event::kSample, HookPhase::kFirst, [this](State&) { current_.clear(); });
  engine.on(Event::kBackward, HookPhase::kLast, [this, &parameters](State&) {
    if (current_.empty()) add_all(parameters);  // no strategy has combined any of them yet
  });
  engine.on(Event::kUpdate, HookPhase::kSynchronize, [this](State& state) {
    steps_.push_back({state.step, std::exchange(current_, {})});
    if (state.step % config_.every_steps == 0) compare();
  });
}

void GradientNorms::add(const at::Tensor& gradients) {
  const at::NoGradGuard no_grad;
  if (outliers_ && gradients.numel() > 0) current_.push_back(at::linalg_vector_norm(gradients));
}

void GradientNorms::add_all(const FlatParameters& parameters) {
  for (const auto& bucket : parameters.buckets()) add(bucket.gradients);
}

void GradientNorms::compare() {
  const auto count = static_cast<std::int64_t>(steps_.size());
  const at::Tensor all = at::zeros({replicas_->size(), count}, at::kDouble);
  auto* own = all[replicas_->rank()].mutable_data_ptr<double>();
  for (const auto& step : steps_) *own++ = norm_of(step.norms);
  replicas_->all_gather(all, all[replicas_->rank()]).wait();
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<double> norms;
    for (int rank = 0; rank < replicas_->size(); ++rank) {
      norms.push_back(all.const_data_ptr<double>()[rank * count + i]);
    }
    for (const auto& outlier : outliers_->add(norms)) {
      ++found_;
      warn(steps_[static_cast<std::size_t>(i)].step, outlier);
    }
    const auto [least, most] = std::ranges::minmax_element(norms);
    if (std::isfinite(*most) && *least > 0) ratio_ = *most / *least;
  }
  steps_.clear();
}

// Every rank knows the result and logs it. The first one has a console to write to.
void GradientNorms::warn(std::int64_t step, const NormOutliers::Outlier& outlier) const {
  const std::string text =
      format_text("the gradient of rank %d in step %" PRId64
                  " has norm %.3g, where %.3g is usual for this rank and the "
                  "others have their usual norms; its samples are unusual, or it computes wrongly",
                  ranks_[static_cast<std::size_t>(outlier.rank)], step, outlier.norm, outlier.usual);
  log_warning() << text;
  if (replicas_->rank() == 0) standard_error().write("Warning: " + text + "\n");
}

Metrics GradientNorms::metrics() const {
  if (!ratio_) return {};
  return {{"gradient_norm_ratio", *ratio_}, {"gradient_outliers", static_cast<double>(found_)}};
}

}  // namespace phalanx
