// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "datasets/loader.h"

namespace phalanx {

/// Returns the same batches as make_loader(), but on a device. The first call of next() reads all samples and stores
/// them in device memory; batches are then taken from there. The random changes of the dataset are made on the device
/// as well (Dataset::changes()).
///
/// `complete` is called on the CPU with many samples at a time, as the dataset returns them, and may add data that
/// depends only on each sample. Inputs and targets of batches are on the device, row weights on the CPU.
///
/// Throws ConfigError if the dataset changes samples in a way that cannot be done on a device, or if `complete` adds
/// data to samples that change.
std::unique_ptr<Loader> make_resident_loader(std::shared_ptr<const Dataset> dataset, BatchSampler::Options options,
                                             c10::Device device, std::function<void(Batch&)> complete);

}  // namespace phalanx
