// SPDX-License-Identifier: Apache-2.0
#include "engine/build/sequence_share.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/partition/sequence_shard.h"

namespace phalanx {
namespace {

bool is_sequence(const TensorSpec& tensor, std::int64_t length) {
  return !tensor.shape.empty() && tensor.shape.front() == length;
}

// Returns true if samples are sequences with a class number at each position, and a score for each class.
bool counts_by_position(const ModelSpec& model, const std::vector<TensorSpec>& targets) {
  if (model.outputs.size() != 1 || targets.size() != 1 || model.inputs.front().shape.empty()) return false;
  const auto length = model.inputs.front().shape.front();
  for (const auto& input : model.inputs) {
    if (!is_sequence(input, length)) return false;
  }
  const auto &output = model.outputs.front(), &target = targets.front();
  return target.classes > 0 && target.shape.size() == 1 && is_sequence(target, length) && output.shape.size() == 2 &&
         is_sequence(output, length);
}

// Throws ConfigError, which suggests the largest smaller number of ranks that fits, and the nearest length.
[[noreturn]] void refuse_length(std::int64_t length, std::int64_t ranks) {
  auto fewer = ranks;
  while (fewer > 1 && length % (2 * fewer) != 0) --fewer;
  const auto below = length / (2 * ranks) * 2 * ranks, above = below + 2 * ranks;
  const auto nearest = below > 0 && length - below <= above - length ? below : above;
  throw ConfigError("mesh.context: samples have " + std::to_string(length) + " positions, which " +
                    std::to_string(ranks) + " ranks cannot divide into two equal chunks each (" +
                    std::to_string(2 * ranks) + " in all); use samples of " + std::to_string(nearest) +
                    " positions, or mesh.context: " + std::to_string(fewer));
}

}  // namespace

SequenceShare::SequenceShare(const Task& task, const SampleSpec& samples, CommunicatorPtr along)
    : along_(std::move(along)) {
  if (along_->size() == 1) return;
  if (!counts_by_position(task.model(), task.targets(samples))) {
    throw ConfigError(
        "mesh.context divides sequences in which every position has an input and a class number as its target, as in"
        " the task language_modelling; these samples are different, so leave it at 1");
  }
  const auto length = task.model().inputs.front().shape.front();
  if (!can_shard_sequence(length, *along_)) refuse_length(length, along_->size());
}

void SequenceShare::cut(Batch& batch) const {
  if (along_->size() == 1) return;
  for (auto& input : batch.inputs) input = shard_sequence(input, 1, *along_);
  for (auto& target : batch.targets) target = shard_sequence(target, 1, *along_);
  batch.row_weights = batch.targets.at(0).ne(kIgnored).sum(1).to(at::kDouble);
}

}  // namespace phalanx
