// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/sharded/gathered_bucket.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace phalanx {
namespace {

// Makes the storage of `values` use `memory` and keep it alive, or have no memory if `memory` is undefined.
void set_memory(const at::Tensor& values, const at::Tensor& memory) {
  auto* const storage = values.storage().unsafeGetStorageImpl();
  if (!memory.defined()) {
    storage->set_data_ptr_noswap(c10::DataPtr(nullptr, values.device()));
    return;
  }
  auto* const held = new at::Tensor(memory);
  const auto let_go = [](void* tensor) { delete static_cast<at::Tensor*>(tensor); };
  storage->set_data_ptr_noswap(c10::DataPtr(memory.mutable_data_ptr(), held, let_go, values.device()));
}

}  // namespace

// Gives the values their own storage: their present storage may contain other data, or not begin with them.
GatheredBucket::GatheredBucket(const Bucket& bucket, const Shards& shards, Communicator& group, BufferPool& pool)
    : bucket_(bucket), shards_(shards), group_(group), pool_(pool), elements_(bucket.values.numel()) {
  const at::NoGradGuard no_grad;
  own_ = bucket.values.narrow(0, shards_.begin(group.rank()), shards_.count(group.rank())).clone();
  pool_.make_room_for(bucket);
  view_values(bucket_, at::empty({elements_}, bucket.values.options().requires_grad(false)));
  set_memory(bucket_.values, {});
}

void GatheredBucket::gather_into(const at::Tensor& run) {
  const at::NoGradGuard no_grad;
  const at::Tensor own = run.narrow(0, shards_.begin(group_.rank()), own_.numel());
  own.copy_(own_);
  work_ = group_.all_gather(run, own, shards_.counts());
}

void GatheredBucket::launch() {
  if (memory_.defined()) return;
  memory_ = pool_.take();
  gather_into(values_in(memory_));
}

void GatheredBucket::wait() {
  if (!work_) return;
  std::exchange(work_, std::nullopt)->wait();
  set_memory(bucket_.values, memory_);
}

void GatheredBucket::release() {
  if (!memory_.defined()) return;
  wait();
  set_memory(bucket_.values, {});
  pool_.give(std::exchange(memory_, {}));
}

void GatheredBucket::keep() {
  release();
  const at::Tensor memory = at::empty({elements_}, own_.options());
  gather_into(memory);
  std::exchange(work_, std::nullopt)->wait();
  set_memory(bucket_.values, memory);
}

}  // namespace phalanx
