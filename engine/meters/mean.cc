// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/mean.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "engine/meters/across_ranks.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr std::size_t kMaxPending = 1024;  // limits the memory of values that are never read

}  // namespace

void Mean::add(double sum, double weight) {
  sum_.add(sum);
  weight_.add(weight);
}

void Mean::add(const at::Tensor& values) {
  const at::Tensor all = values.to(at::kCPU, at::kDouble).contiguous();
  const auto* value = all.data_ptr<double>();
  for (std::int64_t i = 0; i < all.numel(); ++i) sum_.add(value[i]);
  weight_.add(static_cast<double>(all.numel()));
}

void Mean::add_later(const at::Tensor& parts, double factor, double weight) {
  weight_.add(weight);
  pending_.push_back({parts.reshape({-1}), factor});
  if (pending_.size() == kMaxPending) read_pending();
}

// Reads all values together, because each read waits for the device.
void Mean::read_pending() {
  if (pending_.empty()) return;
  std::vector<at::Tensor> parts;
  for (const auto& pending : pending_) parts.push_back(pending.parts);
  const at::Tensor all = at::concat(parts).to(at::kCPU, at::kDouble);
  const auto* value = all.data_ptr<double>();
  for (const auto& pending : pending_) {
    for (std::int64_t i = 0; i < pending.parts.numel(); ++i) sum_.add(*value++ * pending.factor);
  }
  pending_.clear();
}

std::optional<double> Mean::take(Communicator& group) {
  read_pending();
  Mean all = std::exchange(*this, {});
  sum_over_ranks({all.sum_.cells(), all.weight_.cells()}, group);
  const double weight = all.weight_.value();
  if (weight == 0) return std::nullopt;
  return all.sum_.value() / weight;
}

at::Tensor Mean::state() {
  read_pending();
  const auto sum = sum_.cells(), weight = weight_.cells();
  at::Tensor all = at::empty({static_cast<std::int64_t>(sum.size() + weight.size())}, at::kLong);
  std::ranges::copy(weight, std::ranges::copy(sum, all.data_ptr<std::int64_t>()).out);
  return all;
}

void Mean::merge_state(const at::Tensor& state) {
  if (state.numel() != static_cast<std::int64_t>(sum_.cells().size() + weight_.cells().size())) {
    throw DataError(
        "the checkpoint was written by an older version, whose meters kept other numbers; resume with that version");
  }
  const auto* number = state.data_ptr<std::int64_t>();
  for (auto& cell : sum_.cells()) cell += *number++;
  for (auto& cell : weight_.cells()) cell += *number++;
}

}  // namespace phalanx
