// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Products with a matrix that overlap a collective over positions, chunk by chunk. While a rank multiplies one chunk,
/// another chunk is being sent (Wang et al. 2023, Overlap Communication with Dependent Computation via Decomposition in
/// Large Deep Learning Models, ASPLOS, section 5.1; PyTorch calls it asynchronous tensor parallelism). P ranks have
/// equal parts of the positions, dimension -2:
///
///   gathered_product    all_gather of x, then x matrix. P - 1 steps: a rank sends the chunk that it multiplies to the
///                       next rank, and receives a chunk from the rank before.
///   scattered_product   x matrix, then reduce_scatter(sum). P - 1 steps: a rank multiplies a chunk, adds the partial
///                       sum from the rank before, and sends the result on while it multiplies the next chunk.
///
/// The results are the same as with gather_summed() and sum_and_scatter() and a product, except for the order of
/// additions. The bytes on the wire are the same too, but in messages instead of collectives. Each function is the
/// backward of the other one. The gathered chunks are kept for the gradient of the matrix. All ranks call them in the
/// same order, forward and backward. In autocast regions, operands are cast as for a product. Second derivatives throw
/// c10::Error. In a group of one rank, the result is just the product.

/// x [..., p, in] of this rank, matrix [in, out] -> [..., P p, out]
at::Tensor gathered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group);

/// x [..., P p, in], matrix [in, out] -> this rank's [..., p, out] of the sum over the ranks. Throws
/// std::invalid_argument if the positions cannot be divided equally.
at::Tensor scattered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group);

}  // namespace phalanx
