// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The samples over which batch norm takes mean and variance: the samples of all ranks of a group.
struct BatchStatistics {
  CommunicatorPtr group;
  std::int64_t valid = 0;  // the first `valid` rows of this rank's next input are samples, the rest is padding
};

/// The statistics that batch norm keeps for evaluation: [C] each, float32 or float64. Undefined: none are kept.
struct RunningStatistics {
  at::Tensor mean{}, variance{};
  double momentum = 0.1;  // weight of a new batch
};

/// Batch norm (Ioffe and Szegedy 2015, arXiv:1502.03167) in training, with mean and variance over the samples of all
/// ranks, like torch.nn.SyncBatchNorm: the result for a sample does not depend on how many ranks share the batch.
/// input: [n, C, ...] float32, bfloat16 or float16 in any memory format; weight, bias: [C] float32. Alternatively, all
/// of them are float64. Padding is normalised like the other rows, but does not count in the statistics, and its
/// gradient ignores them. A batch without samples on any rank is normalised with the running statistics, if there are
/// any, and does not change them.
///
/// The means and sums of squared differences of the ranks are combined pairwise (Chan, Golub and LeVeque 1979), in rank
/// order and in float64, so running statistics are bitwise the same on all ranks. Gradients of weight and bias are sums
/// over this rank's samples; strategies combine them between ranks like all other gradients.
///
/// The host does not wait for a device, unless this rank has at most one value per channel.
///
/// Collective in forward and again in backward, in the thread that runs it: an all-gather of 2 C + 1 and an all-reduce
/// of 2 C float64 numbers. Throws CommError. Throws ConfigError on all ranks if the whole batch has one value per
/// channel.
at::Tensor sync_batch_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                           const RunningStatistics& running, double eps, const BatchStatistics& statistics);

}  // namespace phalanx
