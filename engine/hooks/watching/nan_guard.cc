// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/nan_guard.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/optim/decorator.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxLosses = 1024;  // losses that are kept before a check

// Checks all values in one pass at the speed of memory. Returns true also for finite values with an infinite sum; the
// caller then checks the values themselves.
bool may_hold_no_number(const at::Tensor& values) {
  return values.numel() > 0 && !std::isfinite(values.sum().item<double>());
}

bool all_finite(const at::Tensor& values) { return at::isfinite(values).all().item<bool>(); }

std::string list_ranks(const std::vector<int>& ranks, int size) {
  if (static_cast<int>(ranks.size()) == size) return size == 1 ? "rank 0" : "all " + std::to_string(size) + " ranks";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

class NanGuard::GuardedUpdate final : public OptimizerDecorator {
 public:
  GuardedUpdate(std::unique_ptr<Optimizer> inner, NanGuard& guard)
      : OptimizerDecorator(std::move(inner)), guard_(guard) {}

  void update() override {
    if (guard_.due_) {
      for (const auto& slice : slices()) guard_.look_at(slice, slice.gradients, Kind::kGradient);
    }
    inner().update();
    if (guard_.due_) look_at_parameters();
  }

  // Gradients are checked on the host, which therefore has to know whether the update is skipped.
  bool can_skip_on_device() const override { return !guard_.due_ && inner().can_skip_on_device(); }
  void update_unless(const at::Tensor& skip) override { inner().update_unless(skip); }

  // The gradients of a replay are gone when it has been launched. Values that are not finite remain in the parameters.
  std::string why_not_recorded() const override { return inner().why_not_recorded(); }
  void replayed() override {
    inner().replayed();
    if (guard_.due_) look_at_parameters();
  }

  void look_at_parameters() {
    for (const auto& slice : slices()) guard_.look_at(slice, slice.values, Kind::kParameter);
  }

 private:
  NanGuard& guard_;
};

NanGuard::NanGuard(std::int64_t every_steps, CommunicatorPtr group)
    : every_(every_steps), group_(std::move(group)), ballot_(at::zeros({1}, at::kLong)) {}

std::unique_ptr<Optimizer> NanGuard::guard(std::unique_ptr<Optimizer> inner) {
  if (every_ == 0) return inner;
  auto guarded = std::make_unique<GuardedUpdate>(std::move(inner), *this);
  update_ = guarded.get();
  return guarded;
}

void NanGuard::attach(Engine& engine) {
  if (every_ == 0) return;
  engine.on(Event::kForwardCriterion, HookPhase::kFirst, [this](State& state) { keep_loss(state); });
  engine.on(Event::kUpdate, HookPhase::kFirst, [this](State& state) {
    read_vote();
    if (state.step % every_ == 0) vote();
  });
  engine.on(Event::kEnd, HookPhase::kFirst, [this](State& state) {
    step_ = state.step;  // a resumed run may have had no step left
    check_now();
  });
}

void NanGuard::check_now() {
  if (every_ == 0) return;
  look_at_losses();
  if (update_ != nullptr) update_->look_at_parameters();
  read_vote();
  vote();
  read_vote();
}

void NanGuard::keep_loss(const State& state) {
  step_ = state.step + 1;
  if (!state.result.elsewhere()) {
    losses_.push_back(state.result.loss);
    steps_of_losses_.push_back(step_);
  }
  if (step_ % every_ == 0 || losses_.size() == kMaxLosses) look_at_losses();
  due_ = step_ % every_ == 0;
}

void NanGuard::look_at_losses() {
  if (!finding_ && !losses_.empty()) {
    const at::Tensor all = at::stack(losses_).to(at::kCPU, at::kDouble);
    const auto* const begin = all.data_ptr<double>();
    const auto* const end = begin + losses_.size();
    const auto* const first = std::find_if(begin, end, [](double loss) { return !std::isfinite(loss); });
    if (first != end) finding_ = Finding{steps_of_losses_[static_cast<std::size_t>(first - begin)], Kind::kLoss};
  }
  losses_.clear();
  steps_of_losses_.clear();
}

void NanGuard::look_at(const Slice& slice, const at::Tensor& values, Kind kind) {
  if (finding_ || !may_hold_no_number(values)) return;
  for (const auto& segment : slice.segments) {
    if (all_finite(values.narrow(0, segment.begin, segment.count))) continue;
    finding_ = Finding{step_, kind, segment.name};
    return;
  }
}

void NanGuard::vote() {
  *ballot_.data_ptr<std::int64_t>() = finding_ ? 1 : 0;
  pending_ = group_->all_reduce(ballot_, Reduction::kMax);
}

void NanGuard::read_vote() {
  pending_.wait();
  if (*ballot_.data_ptr<std::int64_t>() != 0) fail();
}

// Throws the same error on all ranks. They exchange all findings.
void NanGuard::fail() {
  std::ostringstream text;
  if (finding_) text << finding_->step << ' ' << static_cast<std::int64_t>(finding_->kind) << ' ' << finding_->name;
  const auto texts = all_gather_text(text.str(), *group_);
  Finding first;
  std::vector<int> ranks;
  for (int rank = 0; rank < group_->size(); ++rank) {
    Finding found;
    std::int64_t kind = 0;
    const std::string& said = texts[static_cast<std::size_t>(rank)];
    if (said.empty()) continue;  // this rank has found nothing
    std::istringstream(said) >> found.step >> kind >> found.name;
    found.kind = static_cast<Kind>(kind);
    const auto order = [](const Finding& f) { return std::pair(f.step, f.kind); };
    if (ranks.empty() || order(found) < order(first)) {
      first = found;
      ranks = {rank};
    } else if (order(found) == order(first) && found.name == first.name) {
      ranks.push_back(rank);
    }
  }
  const std::string what = first.kind == Kind::kLoss       ? "the loss"
                           : first.kind == Kind::kGradient ? "the gradient of " + first.name
                                                           : "parameter " + first.name;
  throw Error("training has diverged: in step " + std::to_string(first.step) + " " + what + " is not finite, on " +
              list_ranks(ranks, group_->size()) +
              "; lower optimizer.lr or set train.clip_norm (watch.nan_guard: {every_steps: 1} checks the gradients of "
              "every step)");
}

}  // namespace phalanx
