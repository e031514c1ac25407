// SPDX-License-Identifier: Apache-2.0
#include "engine/step/pipeline_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/step/merged_results.h"
#include "engine/step/restore_tensors_guard.h"
#include "framework/base/error.h"
#include "framework/parallel/autocast.h"
#include "framework/parallel/deferred_gradients.h"
#include "framework/parallel/padding_rows.h"
#include "models/segments.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using pipeline::Action;
using Kind = Action::Kind;

// The number of receives that are posted ahead of their turn, while the rank computes.
constexpr std::size_t kAhead = 2;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

PipelineStep::PipelineStep(Setup setup)
    : setup_(std::move(setup)),
      blocks_(as<BlockChain>(setup_.model)->blocks()),
      auxiliary_loss_(as<AuxiliaryLoss>(setup_.model)),
      computation_(setup_.task, setup_.arithmetic, nullptr, setup_.current),
      buffers_(setup_.model.buffers()),
      results_{.pipe = setup_.pipe,
               .control = setup_.control,
               .from = {},
               .predictions = setup_.predictions,
               .loss = setup_.arithmetic.dtype == at::kDouble ? at::kDouble : at::kFloat} {
  const auto& schedule = setup_.schedule;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int i = 0; i < schedule.micro_batches; ++i) ranks_.push_back(schedule.rank_of(stage, i));
  }
  const auto messages = std::int64_t{2} * schedule.stages * schedule.micro_batches;
  for (int i = 0; i < schedule.micro_batches; ++i) results_.from.push_back(schedule.rank_of(schedule.stages - 1, i));
  if (messages <= kResultsTag) return;
  throw ConfigError("pipeline.micro_batches: " + std::to_string(schedule.micro_batches) + " on " +
                    std::to_string(schedule.stages) + " stages are " + std::to_string(messages) +
                    " messages, but there are only " + std::to_string(kResultsTag) + " message tags; use fewer");
}

at::Tensor PipelineStep::run_blocks(std::size_t stage, at::Tensor x, bool training) const {
  const auto run = [this](BlockRange range, at::Tensor input) {
    for (auto i = range.begin; i < range.end; ++i) input = blocks_[i].forward(input);
    return input;
  };
  const BlockRange own{setup_.begins[stage], setup_.begins[stage + 1]};
  return run_in_segments(own, blocks_.size(), training ? setup_.segments : CheckpointedSegments(), run, std::move(x));
}

/// The computation of one batch.
class PipelineStep::Pass {
 public:
  Pass(PipelineStep& step, const Batch& batch, bool training)
      : step_(step),
        setup_(step.setup_),
        schedule_(setup_.schedule),
        batch_(batch),
        training_(training),
        results_(step.results_, parts_, empty_) {
    const std::int64_t rows = batch.rows(), parts = schedule_.micro_batches;
    for (std::int64_t i = 0; i < parts; ++i) {
      const auto begin = rows * i / parts, end = rows * (i + 1) / parts;
      parts_.push_back(rows_of(batch, begin, std::max(end, begin + 1)));
      if (begin == end) parts_.back().valid = 0;
      empty_.push_back(begin == end);
    }
    for (const auto& action : schedule_.actions.at(rank())) {
      if (action.kind == Kind::kForward || training) actions_.push_back(action);
    }
    defers_ = std::ranges::any_of(actions_, [](const auto& action) { return action.kind == Kind::kInputGradient; });
  }

  void run() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      while (posted_ < std::min(actions_.size(), i + 1 + kAhead)) post_receive(actions_[posted_++]);
      if (actions_[i].kind == Kind::kForward) {
        forward(actions_[i]);
      } else if (actions_[i].kind == Kind::kWeightGradient) {
        add_deferred(actions_[i]);
      } else {
        backward(actions_[i]);
      }
      while (!sent_gradients_.empty() && sent_gradients_.front().done()) pop_gradient();
    }
    for (auto& [tag, message] : sent_) message.work.wait();
    while (!sent_gradients_.empty()) pop_gradient();
  }

  const PipelineResults& results() const { return results_; }

  std::size_t max_live() const { return max_live_; }
  double busy() const { return busy_; }

 private:
  struct Live {
    at::Tensor input, output;  // backward starts from `output`
    at::Tensor auxiliary;      // scaled, like the output of the last stage
  };
  struct Message {
    at::Tensor tensor;
    Work work;
  };

  std::size_t rank() const { return static_cast<std::size_t>(setup_.pipe->rank()); }
  bool last(int stage) const { return stage + 1 == schedule_.stages; }
  bool here(int stage, int micro_batch) const { return peer(stage, micro_batch) == setup_.pipe->rank(); }
  int peer(int stage, int micro_batch) const {
    return step_.ranks_[static_cast<std::size_t>(stage * schedule_.micro_batches + micro_batch)];
  }

  // Returns the tag of a stage's input, or of the gradient of this input.
  int tag(const Action& of, int stage, bool gradient) const {
    return ((gradient ? schedule_.stages : 0) + stage) * schedule_.micro_batches + of.micro_batch;
  }

  const Batch& part(int micro_batch) const { return parts_[static_cast<std::size_t>(micro_batch)]; }

  at::Tensor room(int stage, int micro_batch) const {
    const auto& row = setup_.inputs[static_cast<std::size_t>(stage)];
    const auto options = batch_.inputs.at(0).options().dtype(row.dtype);
    return at::empty(row.sizes(part(micro_batch).rows()), options);
  }

  void post_receive(const Action& action) {
    if (action.kind == Kind::kWeightGradient) return;
    const bool gradient = action.kind != Kind::kForward;
    const int stage = action.stage, from = gradient ? stage + 1 : stage - 1;
    if (from < 0 || from >= schedule_.stages || here(from, action.micro_batch)) return;
    const int boundary = gradient ? stage + 1 : stage, number = tag(action, boundary, gradient);
    at::Tensor tensor = room(boundary, action.micro_batch);
    Work work = setup_.pipe->recv(tensor, peer(from, action.micro_batch), number);
    arriving_.emplace(number, Message{std::move(tensor), std::move(work)});
  }

  // Returns the tensor that another stage has sent or left on this rank.
  at::Tensor take(int number) {
    auto node = arriving_.extract(number);
    if (node.empty())
      throw Error("pipeline: schedule " + schedule_.name + " needs message " + std::to_string(number) +
                  " before it is computed");
    node.mapped().work.wait();
    return std::move(node.mapped().tensor);
  }

  void forward(const Action& action);
  void backward(const Action& action);
  void add_deferred(const Action& action);
  void send_output(const Action& action, const at::Tensor& output);
  void send_gradient(const Action& action, const Live& live);

  void pop_gradient() {
    sent_gradients_.front().wait();
    sent_gradients_.pop_front();
  }

  PipelineStep& step_;
  const Setup& setup_;
  const pipeline::Schedule& schedule_;
  const Batch& batch_;
  bool training_;
  std::vector<Batch> parts_;  // by micro-batch, like empty_
  std::vector<bool> empty_;   // true if the part is only a row of padding
  PipelineResults results_;
  std::vector<Action> actions_;               // of this rank
  bool defers_ = false;                       // true if gradients of weights are deferred
  std::size_t posted_ = 0;                    // number of actions whose receives are posted
  std::map<int, Message> arriving_, sent_;    // by tag; sent_ has activations
  std::deque<Work> sent_gradients_;           // each keeps its tensor alive
  std::map<std::pair<int, int>, Live> live_;  // by stage and micro-batch
  std::map<std::pair<int, int>, DeferredGradients> deferred_;
  std::size_t max_live_ = 0;
  double busy_ = 0;
};

void PipelineStep::Pass::forward(const Action& action) {
  const auto stage = static_cast<std::size_t>(action.stage);
  const Batch& own = part(action.micro_batch);
  Live live;
  live.input = stage == 0 ? step_.computation_.inputs(own).at(0)
                          : step_.computation_.laid_out(take(tag(action, action.stage, false)));
  if (training_ && stage > 0) live.input = live.input.detach().requires_grad_();
  const auto begin = Clock::now();
  std::optional<RestoreTensorsGuard> kept;
  if (training_ && own.valid == 0) kept.emplace(step_.buffers_);
  Tensors predictions;
  {
    const RandomRows rows(step_.computation_.key(own));
    const PaddingRows padding(own.valid == 0);
    const Autocast autocast(live.input.device().type(), step_.computation_.autocast());
    std::optional<ExpectDeferral> deferral;
    if (defers_) deferral.emplace();
    live.output = step_.run_blocks(stage, live.input, training_);
    if (last(action.stage)) predictions = step_.computation_.predictions({live.output});
  }
  const double weight = own.weight();
  if (training_ && step_.auxiliary_loss_ != nullptr) live.auxiliary = step_.auxiliary_loss_->take_auxiliary_loss();
  if (live.auxiliary.defined()) {
    live.auxiliary = step_.computation_.scaled(live.auxiliary, step_.computation_.share_of_samples(own, setup_.factor));
  }
  if (last(action.stage)) {
    const at::Tensor loss = step_.computation_.mean_loss(predictions, own, weight);
    for (auto& prediction : predictions) prediction = prediction.detach();
    results_.set(action.micro_batch, {.outputs = std::move(predictions), .loss = loss.detach()});
    live.output = step_.computation_.scaled(loss, step_.computation_.share(own, weight, setup_.factor));
  }
  busy_ += seconds_since(begin);
  if (!last(action.stage)) send_output(action, live.output.detach());
  if (!training_) return;
  live_.emplace(std::pair(action.stage, action.micro_batch), std::move(live));
  max_live_ = std::max(max_live_, live_.size() + deferred_.size());
}

void PipelineStep::Pass::send_output(const Action& action, const at::Tensor& output) {
  const int next = action.stage + 1, number = tag(action, next, false);
  const auto& row = setup_.inputs[static_cast<std::size_t>(next)];
  const auto expected = row.sizes(part(action.micro_batch).rows());
  if (output.sizes() != at::IntArrayRef(expected) || output.scalar_type() != row.dtype) {
    std::ostringstream text;
    text << "pipeline: stage " << action.stage << " gives " << output.sizes() << ' ' << output.scalar_type()
         << ", but stage " << next << " expects rows of " << at::IntArrayRef(row.shape) << ' ' << row.dtype
         << ": samples must have the shape that the dataset declares";
    throw Error(text.str());
  }
  if (here(next, action.micro_batch)) {
    arriving_.emplace(number, Message{output, Work()});
    return;
  }
  at::Tensor message = output.contiguous();
  Work work = setup_.pipe->send(message, peer(next, action.micro_batch), number);
  sent_.emplace(number, Message{std::move(message), std::move(work)});
}

void PipelineStep::Pass::backward(const Action& action) {
  auto node = live_.extract(std::pair(action.stage, action.micro_batch));
  if (node.empty()) throw Error("pipeline: schedule " + schedule_.name + " has a backward without a forward");
  Live& live = node.mapped();
  Tensors roots, gradients;
  if (last(action.stage)) {
    roots.push_back(live.output);
    gradients.emplace_back(at::full_like(live.output, 1));
  } else {
    at::Tensor gradient = take(tag(action, action.stage + 1, true));
    if (live.output.requires_grad()) {
      roots.push_back(live.output);
      gradients.push_back(std::move(gradient));
    }
    // The sender of a gradient has received the activation that belongs to it.
    const auto sent = sent_.find(tag(action, action.stage + 1, false));
    if (sent != sent_.end()) {
      sent->second.work.wait();
      sent_.erase(sent);
    }
  }
  const auto begin = Clock::now();
  if (live.auxiliary.defined() && live.auxiliary.requires_grad()) {
    roots.push_back(live.auxiliary);
    gradients.push_back(at::full_like(live.auxiliary, 1));
  }
  if (action.kind == Kind::kInputGradient) {
    const DeferGradients defer(deferred_[{action.stage, action.micro_batch}]);
    if (!roots.empty()) torch::autograd::backward(roots, gradients);
  } else if (!roots.empty()) {
    torch::autograd::backward(roots, gradients);
  }
  busy_ += seconds_since(begin);
  if (action.stage > 0) send_gradient(action, live);
}

// Layers that deferred nothing have added their gradients already.
void PipelineStep::Pass::add_deferred(const Action& action) {
  const auto node = deferred_.extract({action.stage, action.micro_batch});
  if (node.empty()) throw Error("pipeline: schedule " + schedule_.name + " computes weight gradients too early");
  const auto begin = Clock::now();
  const at::NoGradGuard no_grad;
  for (const auto& add : node.mapped()) add();
  busy_ += seconds_since(begin);
}

void PipelineStep::Pass::send_gradient(const Action& action, const Live& live) {
  const at::Tensor& gradient = live.input.grad();
  at::Tensor message = gradient.defined() ? gradient.contiguous() : at::zeros_like(live.input).contiguous();
  const int number = tag(action, action.stage, true), to = action.stage - 1;
  if (here(to, action.micro_batch)) {
    arriving_.emplace(number, Message{std::move(message), Work()});
  } else {
    sent_gradients_.push_back(setup_.pipe->send(std::move(message), peer(to, action.micro_batch), number));
  }
}

// Completes operations that were launched earlier, such as a vote of all ranks. Otherwise they would run in the next
// operation that is waited for, which may be inside a stage that communicates. While one rank ran them there, other
// ranks would wait for its messages instead of taking part, which is a deadlock.
void PipelineStep::barrier() { setup_.pipe->barrier().wait(); }

Step::Result PipelineStep::run(const Batch& batch, const Watch& watch) {
  setup_.model.train();
  if (setup_.communicates) barrier();
  Pass pass(*this, batch, true);
  const auto begin = Clock::now();
  pass.run();
  seconds_ += seconds_since(begin);
  busy_ += pass.busy();
  max_live_ = std::max(max_live_, pass.max_live());
  Result result = pass.results().collect();
  report_step(watch, result);
  return result;
}

Step::Result PipelineStep::evaluate(const Batch& batch, const Watch& watch) {
  const at::NoGradGuard no_grad;
  setup_.model.eval();
  barrier();
  Pass pass(*this, batch, false);
  pass.run();
  Result result = pass.results().share();
  report_evaluation(watch, result);
  return result;
}

}  // namespace phalanx
