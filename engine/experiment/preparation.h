// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "datasets/loader.h"
#include "framework/base/batch.h"

namespace phalanx {

/// Transformations of a batch between the loader and the step.
struct Preparation {
  std::function<void(Batch&)> complete;  // as datasets gave them, on the CPU
  c10::Device device{c10::kCPU};         // where inputs and targets are to be

  /// The same batches, prepared. To a device other than the CPU they are copied from pinned memory, on a stream of its
  /// own, while the device computes with the batch before. Weights of rows stay on the CPU.
  std::unique_ptr<Loader> of(std::unique_ptr<Loader> loader) const;
};

}  // namespace phalanx
