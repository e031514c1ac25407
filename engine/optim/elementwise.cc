// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/elementwise.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "engine/optim/fused_step.h"

namespace phalanx {
namespace {

// A run of floats with its gradients and two kinds of state takes half a MiB, which fits into the second-level cache of
// current cores. The calls into LibTorch take a microsecond each, which is small compared to the work for 32 K
// elements. The run is slightly shorter than that, because LibTorch splits 32768 elements between threads, at arbitrary
// places.
constexpr std::int64_t kRun = 32768 - 64;

// LibTorch's kernels process a tensor in whole vectors and round the rest at its end differently. This is a whole
// number of vectors of any width, even if a loop processes two at a time.
constexpr std::int64_t kVectors = 64;

}  // namespace

void ElementwiseOptimizer::attach(std::vector<Slice> slices) {
  slices_ = std::move(slices);
  updates_ = 0;
  state_.clear();
  for (const auto& kind : kinds()) {
    auto& tensors = state_.emplace_back();
    for (const auto& slice : slices_)
      tensors.push_back(at::full_like(slice.values, kind.initial, slice.values.options().requires_grad(false)));
  }
  left_out_.clear();
  divide();
}

void ElementwiseOptimizer::leave_out(const std::set<std::string>& parameters) {
  if (parameters == left_out_) return;
  left_out_ = parameters;
  divide();
}

void ElementwiseOptimizer::divide() {
  pieces_.clear(), left_gradients_.clear();
  for (std::size_t i = 0; i < slices_.size(); ++i) divide(i);
}

void ElementwiseOptimizer::divide(std::size_t slice) {
  std::int64_t begin = 0;
  std::size_t group = groups_.size() - 1;  // for elements without a name
  for (const auto& segment : slices_[slice].segments) {
    if (left_out_.contains(segment.name)) {
      add_pieces(slice, group, std::exchange(begin, segment.end()), segment.begin);
      left_gradients_.push_back(slices_[slice].gradients.detach().narrow(0, segment.begin, segment.count));
      continue;
    }
    const auto next = groups_.of(segment.name);
    if (next == group) continue;
    add_pieces(slice, std::exchange(group, next), std::exchange(begin, segment.begin), segment.begin);
  }
  add_pieces(slice, group, begin, slices_[slice].values.numel());
}

void ElementwiseOptimizer::add_pieces(std::size_t slice, std::size_t group, std::int64_t begin, std::int64_t end) {
  if (!slices_[slice].values.is_cpu()) {
    if (begin < end) pieces_.push_back({group, run_of(slice, begin, end)});
    return;
  }
  const std::int64_t whole = begin + (end - begin) / kVectors * kVectors;
  for (; begin < whole; begin += kRun) pieces_.push_back({group, run_of(slice, begin, std::min(begin + kRun, whole))});
  if (whole == end) return;
  Piece piece{group, {}, run_of(slice, whole, end)};
  const auto copy = [](const at::Tensor& part) { return at::zeros({kVectors}, part.options()); };
  piece.run = {copy(piece.original->values), copy(piece.original->gradients), {}};
  for (const auto& state : piece.original->state) piece.run.state.push_back(copy(state));
  pieces_.push_back(std::move(piece));
}

ElementwiseOptimizer::Run ElementwiseOptimizer::run_of(std::size_t slice, std::int64_t begin, std::int64_t end) const {
  const auto part = [&](const at::Tensor& all) { return all.detach().narrow(0, begin, end - begin); };
  Run run{part(slices_[slice].values), part(slices_[slice].gradients), {}};
  for (const auto& kind : state_) run.state.push_back(part(kind[slice]));
  return run;
}

void ElementwiseOptimizer::update() {
  ++updates_;
  for (const auto& gradients : left_gradients_) gradients.zero_();
  if (pieces_.empty()) return;
  const at::Tensor& first = pieces_.front().run.values;
  const at::Tensor update_tensor = fused_step(first, updates_);
  const auto update_pieces = [&](std::int64_t begin, std::int64_t end) {
    // The tensors are detached, so autograd would have nothing to record but would cost time in every call.
    const at::AutoDispatchBelowADInplaceOrView of_this_thread;
    for (auto i = begin; i < end; ++i) update_piece(pieces_[static_cast<std::size_t>(i)], update_tensor);
  };
  const auto count = static_cast<std::int64_t>(pieces_.size());
  if (!first.is_cpu()) return update_pieces(0, count);
  at::parallel_for(0, count, 1, update_pieces);
}

void ElementwiseOptimizer::update_piece(const Piece& piece, const at::Tensor& update_tensor) const {
  const auto& group = groups_[piece.group];
  const Rates rates{learning_rate_ * group.lr_factor, weight_decay_ * group.weight_decay_factor, updates_,
                    update_tensor};
  if (!piece.original) {
    update_run(piece.run, rates);
    piece.run.gradients.zero_();
    return;
  }
  const auto& original = *piece.original;
  const auto in_copy = [&](const at::Tensor& copy) { return copy.narrow(0, 0, original.values.numel()); };
  in_copy(piece.run.values).copy_(original.values);
  in_copy(piece.run.gradients).copy_(original.gradients);
  for (std::size_t i = 0; i < original.state.size(); ++i) in_copy(piece.run.state[i]).copy_(original.state[i]);
  update_run(piece.run, rates);
  original.values.copy_(in_copy(piece.run.values));
  original.gradients.zero_();
  for (std::size_t i = 0; i < original.state.size(); ++i) original.state[i].copy_(in_copy(piece.run.state[i]));
}

std::vector<StateTensor> ElementwiseOptimizer::state() {
  std::vector<StateTensor> all;
  const auto names = kinds();
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    for (std::size_t slice = 0; slice < slices_.size(); ++slice)
      all.push_back({names[kind].name, slice, state_[kind][slice]});
  }
  return all;
}

}  // namespace phalanx
