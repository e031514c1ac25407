// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/elementwise.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {
namespace {

// A range of floats with its gradients and two kinds of state takes half a MiB, which fits into the second-level cache
// of current cores. The calls into LibTorch take a microsecond each, which is small compared to the work for 32 K
// elements. The range is slightly shorter than that, because LibTorch splits 32768 elements between threads, at
// arbitrary places.
constexpr std::int64_t kRangeLength = 32768 - 64;

// LibTorch's kernels process a tensor in whole vectors and round the rest at its end differently. This is a whole
// number of vectors of any width, even if a loop processes two at a time.
constexpr std::int64_t kVectors = 64;

}  // namespace

void ElementwiseOptimizer::attach(std::vector<Slice> slices) {
  SliceOptimizer::attach(std::move(slices));
  recorded_ = {};
  make_pieces();
}

void ElementwiseOptimizer::exclude(const std::set<std::string>& parameters) {
  if (parameters == excluded()) return;
  SliceOptimizer::exclude(parameters);
  make_pieces();
}

void ElementwiseOptimizer::make_pieces() {
  pieces_.clear(), excluded_gradients_.clear();
  for (std::size_t i = 0; i < all_slices().size(); ++i) make_pieces(i);
}

void ElementwiseOptimizer::make_pieces(std::size_t slice) {
  std::int64_t begin = 0;
  std::size_t group = groups().size() - 1;  // for elements without a name
  for (const auto& segment : all_slices()[slice].segments) {
    if (excluded().contains(segment.name)) {
      add_pieces(slice, group, std::exchange(begin, segment.end()), segment.begin);
      excluded_gradients_.push_back(all_slices()[slice].gradients.detach().narrow(0, segment.begin, segment.count));
      continue;
    }
    const auto next = groups().of(segment.name);
    if (next == group) continue;
    add_pieces(slice, std::exchange(group, next), std::exchange(begin, segment.begin), segment.begin);
  }
  add_pieces(slice, group, begin, all_slices()[slice].values.numel());
}

void ElementwiseOptimizer::add_pieces(std::size_t slice, std::size_t group, std::int64_t begin, std::int64_t end) {
  if (!all_slices()[slice].values.is_cpu()) {
    if (begin < end) pieces_.push_back({group, range_of(slice, begin, end)});
    return;
  }
  const std::int64_t whole = begin + (end - begin) / kVectors * kVectors;
  for (; begin < whole; begin += kRangeLength)
    pieces_.push_back({group, range_of(slice, begin, std::min(begin + kRangeLength, whole))});
  if (whole == end) return;
  Piece piece{group, {}, range_of(slice, whole, end)};
  const auto copy = [](const at::Tensor& part) { return at::zeros({kVectors}, part.options()); };
  piece.range = {copy(piece.original->values), copy(piece.original->gradients), {}};
  for (const auto& state : piece.original->state) piece.range.state.push_back(copy(state));
  pieces_.push_back(std::move(piece));
}

ElementwiseOptimizer::Range ElementwiseOptimizer::range_of(std::size_t slice, std::int64_t begin,
                                                           std::int64_t end) const {
  const auto part = [&](const at::Tensor& all) { return all.detach().narrow(0, begin, end - begin); };
  Range range{part(all_slices()[slice].values), part(all_slices()[slice].gradients), {}};
  for (const auto& kind : state_by_kind()) range.state.push_back(part(kind[slice]));
  return range;
}

void ElementwiseOptimizer::update_unless(const at::Tensor& skip) {
  update_all(skip);
  count_unless(skip);
}

void ElementwiseOptimizer::update_all(const std::optional<at::Tensor>& skip) {
  count_update();
  for (const auto& gradients : excluded_gradients_) gradients.zero_();
  if (pieces_.empty()) return;
  const at::Tensor& first = pieces_.front().range.values;
  const at::Tensor number = update_on_device(first);
  const Update update{.number = number, .skip = skip, .recorded = false};
  const auto count = static_cast<std::int64_t>(pieces_.size());
  if (!first.is_cpu()) return update_pieces(update, 0, count);
  at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) { update_pieces(update, begin, end); });
}

void ElementwiseOptimizer::update_pieces(const Update& update, std::int64_t begin, std::int64_t end) const {
  // The tensors are detached, so autograd would have nothing to record but would cost time in every call.
  const at::AutoDispatchBelowADInplaceOrView of_this_thread;
  for (auto i = begin; i < end; ++i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(i)];
    update_piece(piece, rates_for(piece, update));
  }
}

// On a device, LibTorch's fused kernels take the learning rate as a float32 if it is a tensor, as in recorded updates.
// Other updates round it as well, so that both compute the same bits.
ElementwiseOptimizer::Rates ElementwiseOptimizer::rates_for(const Piece& piece, const Update& update) const {
  Rates rates{rates_of(piece.group), update.number, update.skip, nullptr};
  if (update.recorded) {
    ++rates.update;
    rates.on_device = &recorded_.rates[piece.group];
  } else if (records() && !piece.range.values.is_cpu() && piece.range.values.scalar_type() == at::kFloat) {
    rates.learning_rate = static_cast<float>(rates.learning_rate);
  }
  return rates;
}

std::string ElementwiseOptimizer::why_not_recorded() const {
  if (!records()) return "the optimizer takes the learning rate from the host";
  const auto is_float = [](const Slice& slice) { return slice.values.scalar_type() == at::kFloat; };
  return std::ranges::all_of(all_slices(), is_float) ? ""
                                                     : "the optimizer takes a learning rate of float64 from the host";
}

void ElementwiseOptimizer::prepare_replay() {
  if (pieces_.empty()) return;
  const at::Tensor& values = pieces_.front().range.values;
  if (!recorded_.number.defined()) {
    const auto number = [&] { return at::zeros({}, at::device(values.device()).dtype(at::kFloat)); };
    recorded_.number = number();
    for (std::size_t group = 0; group < groups().size(); ++group) recorded_.rates.push_back(number());
    recorded_.written.assign(groups().size(), 0);
    skipped_on(values);
  }
  recorded_.number.fill_(static_cast<double>(rates_of(0).update + 1));
  for (std::size_t group = 0; group < groups().size(); ++group) {
    const double rate = rates_of(group).learning_rate;
    if (std::exchange(recorded_.written[group], rate) != rate) recorded_.rates[group].fill_(rate);
  }
}

void ElementwiseOptimizer::record(const std::optional<at::Tensor>& skip) {
  if (const std::string why = why_not_recorded(); !why.empty()) throw std::logic_error(why);
  recorded_.skips = skip.has_value();
  for (const auto& gradients : excluded_gradients_) gradients.zero_();
  if (pieces_.empty()) return;
  const at::Tensor number = skip ? recorded_.number.sub(skipped_on(recorded_.number)) : recorded_.number;
  update_pieces({.number = number, .skip = skip, .recorded = true}, 0, static_cast<std::int64_t>(pieces_.size()));
  if (skip) skipped_on(recorded_.number).add_(*skip);
}

void ElementwiseOptimizer::replayed() {
  count_update();
  if (recorded_.skips && !pieces_.empty()) note_skips();
}

void ElementwiseOptimizer::update_or_undo(const Range& range, const Rates& rates) const {
  if (!rates.skip || skips()) return update_range(range, rates);
  std::vector<at::Tensor> changing{range.values}, before;
  changing.insert(changing.end(), range.state.begin(), range.state.end());
  for (const auto& one : changing) before.push_back(one.clone());
  update_range(range, rates);
  const at::Tensor undo = rates.skip->to(at::kBool);
  for (std::size_t i = 0; i < changing.size(); ++i) at::where_out(changing[i], undo, before[i], changing[i]);
}

void ElementwiseOptimizer::update_piece(const Piece& piece, const Rates& rates) const {
  if (!piece.original) {
    update_or_undo(piece.range, rates);
    piece.range.gradients.zero_();
    return;
  }
  const auto& original = *piece.original;
  const auto in_copy = [&](const at::Tensor& copy) { return copy.narrow(0, 0, original.values.numel()); };
  in_copy(piece.range.values).copy_(original.values);
  in_copy(piece.range.gradients).copy_(original.gradients);
  for (std::size_t i = 0; i < original.state.size(); ++i) in_copy(piece.range.state[i]).copy_(original.state[i]);
  update_or_undo(piece.range, rates);
  original.values.copy_(in_copy(piece.range.values));
  original.gradients.zero_();
  for (std::size_t i = 0; i < original.state.size(); ++i) original.state[i].copy_(in_copy(piece.range.state[i]));
}

}  // namespace phalanx
