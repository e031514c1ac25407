// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

// What meters of classification see of a batch: its valid rows, with positions of a sequence as rows of their own.
// Where ranks divide the scores of classes, all of them call these functions, in the same order.

/// One class per row, out of as many as there are scores.
struct Classes {
  at::Tensor scores;  // [m, K], as the model made them
  at::Tensor target;  // [m] int64
};

/// Of output [n, ..., K] and target [n, ...] int64, without targets that are ignored. Views where possible. A target of
/// shares [n, ..., K] that add up to 1 counts as the class of the largest one. Throws ConfigError for other shapes.
Classes classes_of(const Batch& batch, const Step::Result& result);

/// The same with the one class of highest score, of equal ones the lowest. Where ranks divide the scores, none of them
/// gets all.
struct Guesses {
  at::Tensor guess;   // [m] int64
  at::Tensor target;  // [m] int64
};
Guesses guesses_of(const Batch& batch, const Step::Result& result);

/// How relevant each of K classes or items is to a row.
struct Labels {
  at::Tensor scores;     // [m, K] double on the CPU; what was NaN is -inf, which ranks last
  at::Tensor relevance;  // [m, K] double on the CPU; 0 is not relevant, above 0 is
  bool one_class;        // made of class numbers
};

/// Of output [n, ..., K] with a target of the same shape (relevance: 0 or 1, or graded) or with class numbers
/// [n, ...] int64; of one score per row, output [n] or [n, 1], with a target of as many elements. Throws ConfigError
/// for other shapes.
Labels labels_of(const Batch& batch, const Step::Result& result);

}  // namespace phalanx
