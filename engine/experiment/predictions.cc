// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/predictions.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <functional>
#include <numeric>
#include <utility>

#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

// Returns the rows of all ranks on rank 0, ordered by batch and within a batch by rank. counts: [ranks, batches].
at::Tensor gather_rows(const Tensors& batches, const at::Tensor& counts, Communicator& group) {
  const at::Tensor own = at::concat(batches).contiguous();
  const at::Tensor per_rank = counts.sum(1);
  std::int64_t length = 1;  // number of elements of a row
  for (const auto size : own.sizes().slice(1)) length *= size;
  std::vector<std::int64_t> parts;
  for (int rank = 0; rank < group.size(); ++rank) parts.push_back(per_rank[rank].item<std::int64_t>() * length);
  auto sizes = own.sizes().vec();
  sizes[0] = per_rank.sum().item<std::int64_t>();
  const at::Tensor all = group.rank() == 0 ? at::empty(sizes, own.options()) : at::Tensor();
  group.gather(all, own, 0, parts).wait();
  if (group.rank() != 0) return {};
  std::vector<std::int64_t> next(parts.size(), 0);  // next row of each rank
  for (std::size_t rank = 1; rank < next.size(); ++rank) {
    next[rank] = next[rank - 1] + per_rank[static_cast<std::int64_t>(rank) - 1].item<std::int64_t>();
  }
  Tensors ordered;
  for (std::int64_t batch = 0; batch < counts.size(1); ++batch) {
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const auto rows = counts[static_cast<std::int64_t>(rank)][batch].item<std::int64_t>();
      ordered.push_back(all.narrow(0, next[rank], rows));
      next[rank] += rows;
    }
  }
  return at::concat(ordered);
}

std::int64_t elements_of(const TensorSpec& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Returns true if the output has one score for each class of the first target.
bool has_scores(const TensorSpec& output, const std::vector<TensorSpec>& targets) {
  if (targets.empty() || targets.front().classes == 0) return false;
  return elements_of(output) == elements_of(targets.front()) * targets.front().classes;
}

}  // namespace

Predictions::Predictions(const ModelSpec& model, const std::vector<TensorSpec>& targets)
    : outputs_(model.outputs.size()), classes_(has_scores(model.outputs.front(), targets)) {
  for (const auto& output : model.outputs) names_.push_back(output.name);
  for (const auto& target : targets) names_.push_back(target.name);
  if (classes_) names_.emplace_back("predicted");
  rows_.resize(names_.size());
}

void Predictions::add(const State& state) {
  const auto valid = state.batch.valid;
  const auto keep = [&](std::size_t name, const at::Tensor& tensor) {
    const at::Tensor rows = tensor.narrow(0, 0, valid).cpu();
    const bool short_numbers = rows.is_floating_point() && rows.element_size() < 4;
    rows_[name].push_back(short_numbers ? rows.to(at::kFloat) : rows.clone());
  };
  for (std::size_t i = 0; i < outputs_; ++i) keep(i, state.result.outputs.at(i));
  const std::size_t targets = names_.size() - outputs_ - (classes_ ? 1 : 0);
  for (std::size_t i = 0; i < targets; ++i) keep(outputs_ + i, state.batch.targets.at(i));
  if (classes_) keep(names_.size() - 1, state.result.outputs.at(0).argmax(-1));
  valid_rows_.push_back(valid);
}

void Predictions::save(const std::string& path, Communicator& group) const {
  const auto batches = static_cast<std::int64_t>(valid_rows_.size());
  const at::Tensor counts = at::empty({group.size(), batches}, at::kLong);
  group.all_gather(counts, at::tensor(valid_rows_, at::kLong)).wait();
  NamedTensors all;
  for (std::size_t i = 0; i < names_.size(); ++i) all.emplace_back(names_[i], gather_rows(rows_[i], counts, group));
  if (group.rank() == 0) save_safetensors(path, all);
}

}  // namespace phalanx
