// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// What meters of metric learning see of a batch: its valid rows, each of them members with an embedding and a class.
struct Embeddings {
  at::Tensor vectors;  // [n, members, width] double, dense, on the CPU
  at::Tensor classes;  // [n, members] int64, dense, on the CPU
};

/// Of output [n, members, width] with class numbers [n, members] int64; or [n, width] with [n], one member each.
/// Throws ConfigError for other shapes.
Embeddings embeddings_of(const Batch& batch, const Step::Result& result);

}  // namespace phalanx
