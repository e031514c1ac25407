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

/// The mean of what all ranks hold, sent as a block code both ways, with error feedback both ways (Tang et al.:
/// DoubleSqueeze, 2019). The bucket is cut into P parts of whole blocks; part r is rank r's to reduce. In each step,
/// with residuals e and d of each rank zero at first:
///
///   1. e += tensor; code e; e -= what the code decodes to                        all parts
///   2. the code of part s goes to rank s                                         all_to_all
///   3. d += mean over ranks of what decodes from it; code d; d -= decoded        the own part
///   4. that code goes to all, who decode it into the tensor                      all_gather
///
/// So the sum of what was delivered is the sum of the true means, minus the mean of the ranks' e, minus d. All ranks
/// decode the same bytes and get the same bits.
///
/// Wire: for each rank the code of the others' parts, and P - 1 times the code of its own; over all ranks exactly
/// 2 (P - 1) C, where C is the number of bytes of the code of all parts. Memory: n + n / P floats.
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
  std::vector<std::int64_t> begins_;      // of the parts, and the end; known with the first exchange
  std::vector<std::int64_t> code_bytes_;  // of the parts
  std::vector<float> residual_;           // e
  std::vector<float> part_residual_;      // d
};

}  // namespace phalanx
