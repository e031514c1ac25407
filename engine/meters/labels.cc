// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/labels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/one_hot.h>
#include <c10/util/StringUtil.h>

#include <limits>

#include "framework/base/error.h"
#include "framework/parallel/divided_scores.h"

namespace phalanx {
namespace {

bool has_class_numbers(const at::Tensor& output, const at::Tensor& target) {
  return target.scalar_type() == at::kLong && target.dim() + 1 == output.dim() &&
         target.sizes() == output.sizes().slice(0, static_cast<std::size_t>(target.dim()));
}

[[noreturn]] void refuse(const char* wanted, const at::Tensor& output, const at::Tensor& target) {
  throw ConfigError(c10::str("a meter needs ", wanted, ", but the model's output is ", output.sizes(),
                             " and the target ", target.sizes(), " ", target.scalar_type(),
                             "; choose others in evaluate.meters and watch.meters"));
}

// Returns the most likely class if the target consists of class probabilities that add up to 1, as in mixed samples.
at::Tensor class_numbers(const at::Tensor& output, const at::Tensor& target) {
  if (!c10::isFloatingType(target.scalar_type()) || target.dim() < 2 || target.dim() != output.dim()) return target;
  const bool shares = (target.sum(-1) - 1).abs().max().item<double>() < 1e-3;
  return shares ? target.argmax(-1) : target;
}

Classes counted_rows(const Batch& batch, const at::Tensor& output, const at::Tensor& target) {
  if (!has_class_numbers(output, target)) {
    refuse("scores [n, ..., classes] and class indices [n, ...] int64", output, target);
  }
  Classes all{output.narrow(0, 0, batch.valid).flatten(0, -2), target.narrow(0, 0, batch.valid).flatten()};
  if (!batch.row_weights.defined()) return all;
  const at::Tensor counted = all.target.ne(kIgnored).nonzero().flatten();
  return {all.scores.index_select(0, counted), all.target.index_select(0, counted)};
}

}  // namespace

Classes classes_of(const Batch& batch, const Step::Result& result) {
  const auto output = result.whole_output();
  return counted_rows(batch, output, class_numbers(output, batch.targets.at(0)));
}

PredictedClasses predicted_classes_of(const Batch& batch, const Step::Result& result) {
  const auto& output = result.outputs.at(0);
  const auto [scores, target] = counted_rows(batch, output, class_numbers(output, batch.targets.at(0)));
  return {result.vocabulary_shard == nullptr ? scores.argmax(-1) : best_class(scores, *result.vocabulary_shard),
          target};
}

Labels labels_of(const Batch& batch, const Step::Result& result) {
  const at::Tensor output = result.whole_output(), target = batch.targets.at(0);
  const bool one_score = output.dim() == 1 || (output.dim() == 2 && output.size(1) == 1);
  const bool same_shape = one_score ? target.numel() == output.numel() : target.sizes() == output.sizes();
  if (!same_shape && !has_class_numbers(output, target)) {
    refuse("scores and as many labels, or class indices [n, ...] int64", output, target);
  }
  const auto columns = one_score ? 1 : output.size(-1);
  at::Tensor labels = target.narrow(0, 0, batch.valid), given = output.narrow(0, 0, batch.valid);
  if (!same_shape) {
    const auto classes = counted_rows(batch, output, target);
    labels = at::one_hot(classes.target, columns);
    given = classes.scores;
  }
  constexpr double kLast = -std::numeric_limits<double>::infinity();
  const at::Tensor scores = given.to(at::kCPU, at::kDouble).reshape({-1, columns});
  return {.scores = at::nan_to_num(scores, kLast, -kLast, kLast).contiguous(),
          .relevance = labels.to(at::kCPU, at::kDouble).reshape({-1, columns}).contiguous(),
          .one_class = !same_shape};
}

}  // namespace phalanx
