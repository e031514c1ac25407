// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "engine/sync/buffer_pool.h"
#include "engine/sync/shards.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// A bucket of whose values each rank keeps its own part; all of them are gathered where they are needed, and released
/// after it. Parameters stay the same tensors: it is the storage which they, the bucket's values and all views of these
/// lie in that has its memory taken away and gets other memory, with the same values. So what autograd saved of them in
/// forward is there again in backward. Whoever reads a parameter without its values gets LibTorch's error of a tensor
/// without data.
class GatheredBucket {
 public:
  /// Takes the own part of the values that are there, and releases them. All must outlive it; `group` and `pool` have
  /// the same ranks.
  GatheredBucket(const Bucket& bucket, const Shards& shards, Communicator& group, BufferPool& pool);

  const Bucket& bucket() const { return bucket_; }

  /// This rank's part of the values, in memory of its own.
  const at::Tensor& own() const { return own_; }

  /// Launches the gathering, unless it was; the values are there after wait(). Collective.
  void launch();
  void wait();

  /// Takes the values away, if they are there.
  void release();

  /// Gathers them for good, into memory that is not the pool's. Collective.
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
  at::Tensor memory_;  // undefined: released
  std::optional<Work> work_;
};

}  // namespace phalanx
