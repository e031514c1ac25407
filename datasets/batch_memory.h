// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>

#include "framework/base/batch.h"

namespace phalanx {

/// Makes `tensor` a dense CPU tensor with this shape and dtype, whose contents are undefined; the caller overwrites
/// them through its data pointer. Keeps the tensor's memory if it fits and no one else holds it. Otherwise assigns a
/// new tensor, so that other holders of the old one (a graph, a hook, a queue) keep their values.
void ensure(at::Tensor& tensor, at::IntArrayRef sizes, at::ScalarType dtype);

/// Does the same for tensor `index` of a batch's inputs or targets and returns it. Appends tensors if there are too
/// few.
at::Tensor& ensure(Tensors& tensors, std::size_t index, at::IntArrayRef sizes, at::ScalarType dtype);

}  // namespace phalanx
