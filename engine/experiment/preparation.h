// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "datasets/loader.h"
#include "engine/build/sequence_share.h"
#include "engine/task/task.h"
#include "framework/base/batch.h"

namespace phalanx {

/// The preparation of a batch between the loader and the step.
struct Preparation {
  std::function<void(Batch&)> complete;  // changes a batch of a dataset, on the CPU
  c10::Device device{c10::kCPU};         // destination of inputs and targets

  /// Returns a loader of the same batches, prepared. If the device is not the CPU, a batch is copied there from pinned
  /// memory on a separate stream, while the device computes with the batch before. Weights of rows stay on the CPU.
  std::unique_ptr<Loader> of(std::unique_ptr<Loader> loader) const;
};

/// Returns a function that completes a batch of a dataset: the task prepares it and checks the values of the first
/// batch, and ranks that divide sequences keep their positions. `task` must outlive the function. Copies of it, which
/// may be called in other threads, have the first batch in common.
std::function<void(Batch&)> complete_batches(const Task& task, const SequenceShare& sequence);

}  // namespace phalanx
