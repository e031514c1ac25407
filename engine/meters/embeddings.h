// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/base/batch.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// The valid rows of a batch for meters of metric learning. Each row consists of members with an embedding and a class.
struct Embeddings {
  at::Tensor vectors;  // [n, members, width] double, dense, on the CPU
  at::Tensor classes;  // [n, members] int64, dense, on the CPU
};

/// Extracts output [n, members, width] with class indices [n, members] int64, or [n, width] with [n], which is one
/// member per row. Throws ConfigError for other shapes.
Embeddings embeddings_of(const Batch& batch, const Step::Result& result);

}  // namespace phalanx
