// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Over which samples batch norm takes mean and variance: those of all ranks of a group.
struct BatchStatistics {
  CommunicatorPtr group;
  std::int64_t valid = 0;  // the first `valid` rows of this rank's next input are samples, the rest is padding
};

/// What batch norm keeps for evaluation, [C] float32 each, or float64; undefined: nothing is kept.
struct RunningStatistics {
  at::Tensor mean{}, variance{};
  double momentum = 0.1;  // share of a new batch
};

/// Batch norm (Ioffe and Szegedy 2015, arXiv:1502.03167) in training, with mean and variance over the samples of all
/// ranks, as torch.nn.SyncBatchNorm: what comes of a sample does not depend on how many ranks share the batch.
/// input: [n, C, ...] float32, bfloat16 or float16 in any memory format; weight, bias: [C] float32. Or all of them
/// float64. Padding is normalised like the rest, but does not count, and its gradient goes through by itself. A batch
/// without samples on any rank is normalised with the running statistics, where there are some, and leaves them as they
/// are.
///
/// Ranks' means and sums of squared differences are combined pairwise (Chan, Golub and LeVeque 1979), in the order of
/// ranks and in float64, so running statistics are bitwise the same on all ranks. Gradients of weight and bias are of
/// this rank's samples; strategies agree on them as on all others.
///
/// Collective in forward and once more in backward, in the thread that runs it: an all-gather of 2 C + 1 and an
/// all-reduce of 2 C numbers of 8 bytes. Throws CommError, and ConfigError on all ranks if there is one value per
/// channel in all.
at::Tensor sync_batch_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                           const RunningStatistics& running, double eps, const BatchStatistics& statistics);

}  // namespace phalanx
