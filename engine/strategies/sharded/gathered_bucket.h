// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "engine/strategies/sharded/buffer_pool.h"
#include "engine/strategies/sharded/shards.h"
#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// A bucket of which each rank keeps only its own part of the values. The whole values are gathered when they are
/// needed and released afterwards. The parameters stay the same tensors: the memory is taken from, and given back to,
/// the storage that they share with the bucket's values and all views of these. Tensors that autograd saved in forward
/// therefore have their values again in backward. Reading a parameter without its values gives LibTorch's error about a
/// tensor without data.
class GatheredBucket {
 public:
  /// Copies this rank's part of the current values and releases the whole ones. All arguments must outlive the object;
  /// `group` and `pool` have the same ranks.
  GatheredBucket(const Bucket& bucket, const Shards& shards, Communicator& group, BufferPool& pool);

  const Bucket& bucket() const { return bucket_; }

  /// This rank's part of the values, in its own memory.
  const at::Tensor& own() const { return own_; }

  /// Launches the gathering unless it was launched already. The values can be used after wait(). Collective.
  void launch();
  void wait();

  /// Releases the memory of the values, if they have any.
  void release();

  /// Gathers the values permanently, into memory that is not from the pool. Collective.
  void keep();

 private:
  at::Tensor values_in(const at::Tensor& memory) const { return memory.narrow(0, 0, elements_); }
  void gather_into(const at::Tensor& run);

  Bucket bucket_;
  Shards shards_;
  Communicator& group_;
  BufferPool& pool_;
  std::int64_t elements_;
  at::Tensor own_;
  at::Tensor memory_;  // undefined if released
  std::optional<Work> work_;
};

}  // namespace phalanx
