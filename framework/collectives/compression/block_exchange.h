// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/collectives/compression/block_code.h"
#include "framework/collectives/compression/compressor.h"

namespace phalanx {

/// Computes the mean of the buckets of all ranks. Buckets are sent as a block code in both directions, with error
/// feedback in both (Tang et al.: DoubleSqueeze, 2019). The bucket is cut into P parts of whole blocks; rank r reduces
/// part r. Each rank has residuals e and d, which are zero at first. A step is
///
///   1. e += tensor; code e; e -= decoded code                                      all parts
///   2. send the code of part s to rank s                                           all_to_all
///   3. d += mean of the decoded codes of all ranks; code d; d -= decoded code      own part
///   4. send that code to all ranks, which decode it into the tensor                all_gather
///
/// The sum of the delivered means is therefore the sum of the true means, minus the mean of the ranks' e, minus d. All
/// ranks decode the same bytes and get the same bits.
///
/// Wire: each rank sends the code of the other ranks' parts once, and the code of its own part P - 1 times. All ranks
/// together send exactly 2 (P - 1) C bytes, where C is the number of bytes of the code of all parts. Memory: n + n / P
/// floats.
class BlockExchange final : public Compressor {
 public:
  BlockExchange(const BucketLayout& layout, std::unique_ptr<const BlockCode> code, std::int64_t start_after = 0);

  StateDict state(const Communicator& group) override;

 private:
  void exchange(Wire& wire, at::Tensor tensor) override;
  void divide(int rank, int ranks);
  at::Tensor encode_own(const at::Tensor& tensor);
  void add_mean(const Wire& wire, const at::Tensor& codes);
  void decode(const at::Tensor& codes, const at::Tensor& tensor) const;

  std::span<float> part(float* values, int rank) const;

  std::unique_ptr<const BlockCode> code_;
  std::vector<std::int64_t> begins_;      // of the parts, and the end of the last one; empty before the first exchange
  std::vector<std::int64_t> code_bytes_;  // of each part
  std::vector<float> residual_;           // e in the comment above
  std::vector<float> part_residual_;      // d in the comment above
};

}  // namespace phalanx
