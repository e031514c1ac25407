// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>

#include "framework/base/batch.h"

namespace phalanx {

/// Makes `tensor` a dense CPU tensor of this shape and dtype, with any content, to be overwritten through its data
/// pointer. Keeps its memory when it fits already and nobody else holds it; otherwise the tensor is a new one, so that
/// whoever kept the old one (a graph, a hook, a queue) still sees what it was given.
void ensure(at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType dtype);

/// The same of tensor `index` of a batch's inputs or targets, which there may be fewer of yet. Returns it.
at::Tensor& ensure(Tensors& tensors, std::size_t index, at::IntArrayRef sizes, at::ScalarType dtype);

}  // namespace phalanx
