// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Collectives that autograd differentiates. They are the edges of a layer that is sharded over ranks (Shoeybi et al.
/// 2019, Megatron-LM, arXiv:1909.08053, section 3; Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.2).
///
///   function           forward                            backward
///   copy_to_ranks      nothing                            all_reduce(sum)
///   sum_over_ranks     all_reduce(sum)                    nothing
///   gather_parts       all_gather along `dim`             this rank's part
///   take_part          this rank's part along `dim`       all_gather
///   gather_summed      all_gather along `dim`             reduce_scatter(sum)
///   sum_and_scatter    reduce_scatter(sum) along `dim`    all_gather
///   exchange_parts     all_to_all: part r of `split_dim`  all_to_all, back
///                      to rank r, received parts are
///                      joined along `join_dim`
///   exchange_rows      all_to_all of unequal row counts   all_to_all, back
///
/// The first two are a pair, and so are the next two and the two after them. Everything downstream of copy_to_ranks
/// (and of take_part and gather_summed) may differ between the ranks. The result of gather_parts is the same on all of
/// them, and each computes the same loss from it. If the ranks compute one loss of which each has a part, use
/// gather_summed.
///
/// All ranks of the group call them in the same order, forward and backward; each call waits for its result. Tensors
/// may have any dtype that the group moves. Second derivatives follow the same table. In a group of one rank, the
/// result is the tensor itself.

at::Tensor copy_to_ranks(const at::Tensor& tensor, const CommunicatorPtr& group);
at::Tensor sum_over_ranks(const at::Tensor& tensor, const CommunicatorPtr& group);

/// `sizes`: size of each rank's part along `dim`. If it is empty, all parts have the same size: the size of this rank's
/// part, or an equal share for take_part and sum_and_scatter, which throw std::invalid_argument if there is no equal
/// share.
at::Tensor gather_parts(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group,
                        std::vector<std::int64_t> sizes = {});
at::Tensor take_part(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group,
                     std::vector<std::int64_t> sizes = {});
at::Tensor gather_summed(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group,
                         std::vector<std::int64_t> sizes = {});
at::Tensor sum_and_scatter(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group,
                           std::vector<std::int64_t> sizes = {});

/// Throws std::invalid_argument if `split_dim` cannot be divided into equal parts.
at::Tensor exchange_parts(const at::Tensor& tensor, std::int64_t split_dim, std::int64_t join_dim,
                          const CommunicatorPtr& group);

/// Exchanges rows of the first dimension: to[r] rows go to rank r and from[r] rows come from it, in rank order. Experts
/// on several ranks exchange tokens in this way. The backward pass sends the gradients back.
at::Tensor exchange_rows(const at::Tensor& rows, std::vector<std::int64_t> to, std::vector<std::int64_t> from,
                         const CommunicatorPtr& group);

}  // namespace phalanx
