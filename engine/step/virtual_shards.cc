// SPDX-License-Identifier: Apache-2.0
#include "engine/step/virtual_shards.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "engine/step/merged_results.h"
#include "framework/base/parts.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

void copy_all(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

at::Tensor concat_flat(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const auto& tensor : tensors) flat.push_back(tensor.flatten().to(at::kDouble));
  return at::concat(flat);
}

}  // namespace

VirtualShards::VirtualShards(Step& step, CommunicatorPtr group, std::vector<at::Tensor> buffers, Options options,
                             TakeGradients take)
    : step_(step),
      group_(std::move(group)),
      options_(std::move(options)),
      take_(std::move(take)),
      buffer_sum_(group_, options_.shards) {
  for (auto& buffer : buffers) (buffer.is_floating_point() ? averaged_ : counted_).push_back(buffer);
}

// The rows are copied to their own memory, because the alignment of the data may affect how kernels round.
Batch VirtualShards::shard_of(const Batch& batch, int shard) const {
  const auto begin_of = [&](int i) { return part_begin(batch.global_rows, options_.shards, i); };
  const auto start = begin_of(buffer_sum_.first());
  Batch part = rows_of(batch, begin_of(shard) - start, begin_of(shard + 1) - start);
  for (auto& input : part.inputs) input = input.clone();
  for (auto& target : part.targets) target = target.clone();
  return part;
}

Step::Result VirtualShards::run(const Batch& batch, const Watch& watch) {
  const auto averaged = copies_of(averaged_), counted = copies_of(counted_);
  const at::Tensor before = averaged.empty() ? at::Tensor() : concat_flat(averaged);
  MergedResults results;
  for (int shard = buffer_sum_.first(); shard < buffer_sum_.last(); ++shard) {
    const Batch part = shard_of(batch, shard);
    if (part.valid > 0) {
      const at::NoGradGuard no_grad;
      copy_all(averaged_, averaged);
      copy_all(counted_, counted);
      at::manual_seed(mix(options_.current->seed(), shard));
      const at::AutoGradMode with_grad(true);
      results.add(step_.run(part, ignore_stages));
    }
    take_(shard);
    if (!averaged_.empty()) {
      const at::Tensor change = concat_flat(averaged_).sub_(before);
      buffer_sum_.add(shard, part.valid > 0 ? change : change.zero_());
    }
  }
  average_changes(before, batch.global_rows);
  // A share without samples has one row of padding. Evaluating it changes nothing but gives an output of the right
  // shape.
  if (batch.valid == 0) {
    results.add(step_.evaluate(batch, ignore_stages));
    if (options_.on_empty) options_.on_empty();
  }
  const Result whole = results.whole();
  report_step(watch, whole);
  return whole;
}

Step::Result VirtualShards::evaluate(const Batch& batch, const Watch& watch) {
  MergedResults results;
  for (int shard = buffer_sum_.first(); shard < buffer_sum_.last(); ++shard) {
    const Batch part = shard_of(batch, shard);
    if (part.valid > 0) results.add(step_.evaluate(part, ignore_stages));
  }
  if (batch.valid == 0) results.add(step_.evaluate(batch, ignore_stages));
  const Result whole = results.whole();
  report_evaluation(watch, whole);
  return whole;
}

// Shards without samples change no buffers. Integer buffers, which count steps, are the same on all ranks that had a
// sample, and rank 0 always has one.
void VirtualShards::average_changes(const at::Tensor& before, std::int64_t global_rows) {
  const at::NoGradGuard no_grad;
  if (!averaged_.empty()) {
    at::Tensor after = at::empty_like(before);
    buffer_sum_.finish(after);
    after.div_(static_cast<double>(std::min<std::int64_t>(global_rows, options_.shards))).add_(before);
    std::int64_t begin = 0;
    for (const auto& buffer : averaged_) {
      buffer.copy_(after.narrow(0, begin, buffer.numel()).view(buffer.sizes()));
      begin += buffer.numel();
    }
  }
  if (global_rows >= options_.shards) return;
  for (const auto& buffer : counted_) group_->broadcast(buffer, 0).wait();
}

}  // namespace phalanx
