// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

// The valid rows of a batch for meters of classification. The positions of a sequence are separate rows. If ranks
// divide the class scores, all of them must call these functions, in the same order.

/// Rows with one class each, out of as many classes as there are scores.
struct Classes {
  at::Tensor scores;  // the model's scores
  at::Tensor target;  // [m] int64
};

/// Extracts output [n, ..., K] and target [n, ...] int64, without ignored targets. Returns views if possible. A target
/// [n, ..., K] of class probabilities that add up to 1 counts as the most likely class. Throws ConfigError for other
/// shapes.
Classes classes_of(const Batch& batch, const Step::Result& result);

/// The same with the predicted class, which has the highest score; the lowest one if scores are equal. If ranks divide
/// the scores, no rank gets all of them.
struct PredictedClasses {
  at::Tensor predicted;  // [m] int64
  at::Tensor target;     // [m] int64
};
PredictedClasses predicted_classes_of(const Batch& batch, const Step::Result& result);

/// The relevance of each of K classes or items for each row.
struct Labels {
  at::Tensor scores;     // [m, K] double on the CPU; NaN is replaced by -inf, which ranks last
  at::Tensor relevance;  // [m, K] double on the CPU; relevant if above 0
  bool one_class;        // true if computed from class indices
};

/// Extracts output [n, ..., K] with a target of the same shape (relevance: 0 or 1, or graded) or with class indices [n,
/// ...] int64; or one score per row, output [n] or [n, 1], with a target with as many elements. Throws ConfigError for
/// other shapes.
Labels labels_of(const Batch& batch, const Step::Result& result);

}  // namespace phalanx
