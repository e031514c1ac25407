#include "engine/accumulated_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

namespace phalanx {
namespace {

Batch part_of(const Batch& batch, std::int64_t begin, std::int64_t end) {
  Batch part = batch;
  part.input = batch.input.narrow(0, begin, end - begin);
  part.target = batch.target.narrow(0, begin, end - begin);
  part.valid = std::clamp<std::int64_t>(batch.valid - begin, 0, end - begin);
  return part;
}

}  // namespace

Step::Result AccumulatedStep::run(const Batch& batch, const Watch& watch) {
  const std::int64_t rows = batch.input.size(0);
  std::vector<at::Tensor> outputs;
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (std::int64_t i = 0; i < parts_; ++i) {
    const Batch part = part_of(batch, rows * i / parts_, rows * (i + 1) / parts_);
    if (part.input.size(0) == 0) continue;
    const Result result = step_.run(part, [](Stage, const Result&) {});
    outputs.push_back(result.output);
    loss += result.loss.to(at::kDouble) * part.valid;
  }
  const Result whole{.output = at::cat(outputs),
                     .loss = (loss / std::max<std::int64_t>(batch.valid, 1)).to(outputs.front().scalar_type())};
  for (const auto stage : {Stage::kForward, Stage::kForwardCriterion, Stage::kBackwardCriterion, Stage::kBackward}) {
    watch(stage, whole);
  }
  return whole;
}

}  // namespace phalanx
