// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Products with a matrix beside a collective over positions, chunk by chunk: while one rank's chunk is multiplied,
/// another one is on its way (Wang et al. 2023, Overlap Communication with Dependent Computation via Decomposition in
/// Large Deep Learning Models, ASPLOS, section 5.1; PyTorch calls it asynchronous tensor parallelism). Of P ranks with
/// equal parts of the positions, dimension -2:
///
///   gathered_product    all_gather of x, then x matrix. P - 1 steps: a rank sends the next one the chunk that it
///                       multiplies, and gets that of the rank before
///   scattered_product   x matrix, then reduce_scatter(sum). P - 1 steps: a rank multiplies a chunk, adds what it got
///                       of it from the rank before, and sends the sum on while it multiplies the next one
///
/// The results are those of gather_summed() and sum_and_scatter() with a product, but for the order of additions, and
/// so are the bytes on the wire, in messages instead of collectives. Each is the other's backward, with the gradient of
/// the matrix, for which gathered chunks are kept. All ranks call them in the same order, forward and backward. In
/// autocast regions operands are cast as for a product. Second derivatives are refused: c10::Error. A group of one
/// rank: the product alone.

/// x [..., p, in] of this rank, matrix [in, out] -> [..., P p, out]
at::Tensor gathered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group);

/// x [..., P p, in], matrix [in, out] -> this rank's [..., p, out] of the sum over the ranks. Throws
/// std::invalid_argument where positions cannot be divided equally.
at::Tensor scattered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group);

}  // namespace phalanx
