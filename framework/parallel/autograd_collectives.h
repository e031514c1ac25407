// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Collectives that autograd differentiates: what a layer that is divided among ranks does at its edges (Shoeybi et al.
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
///                      to rank r, what comes is joined
///                      along `join_dim`
///   exchange_rows      all_to_all of unequally many rows  all_to_all, back
///
/// The first two are a pair, as are the next two and the two after them. All that is downstream of copy_to_ranks (and
/// take_part, gather_summed) may differ between the ranks; what gather_parts gives is the same on all of them, and each
/// computes the same loss of it. Where ranks compute one loss each of which they have a part, use gather_summed.
///
/// All ranks of the group call them in the same order, forward and backward; each waits for its result. Of any dtype
/// that the group moves. Derivatives of derivatives are those of the functions in the table. A group of one rank: the
/// tensor itself.

at::Tensor copy_to_ranks(const at::Tensor& tensor, const CommunicatorPtr& group);
at::Tensor sum_over_ranks(const at::Tensor& tensor, const CommunicatorPtr& group);

/// `sizes`: of each rank's part along `dim`; empty: all are as large (as this rank's; of take_part and sum_and_scatter:
/// as an equal share, and std::invalid_argument where there is none).
at::Tensor gather_parts(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group,
                        std::vector<std::int64_t> sizes = {});
at::Tensor take_part(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group,
                     std::vector<std::int64_t> sizes = {});
at::Tensor gather_summed(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group,
                         std::vector<std::int64_t> sizes = {});
at::Tensor sum_and_scatter(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group,
                           std::vector<std::int64_t> sizes = {});

/// Equal parts: std::invalid_argument where `split_dim` has none.
at::Tensor exchange_parts(const at::Tensor& tensor, std::int64_t split_dim, std::int64_t join_dim,
                          const CommunicatorPtr& group);

/// Rows of the first dimension, as many to and from each rank as it says, in rank order: what experts on several ranks
/// do with tokens. Backward goes back.
at::Tensor exchange_rows(const at::Tensor& rows, std::vector<std::int64_t> to, std::vector<std::int64_t> from,
                         const CommunicatorPtr& group);

}  // namespace phalanx
