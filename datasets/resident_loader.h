// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "datasets/loader.h"

namespace phalanx {

/// The batches of make_loader(), made on a device: all samples are read once, by the first call of next(), and stay in
/// its memory, and a batch is taken from them there. What the dataset changes at random is done there, too
/// (Dataset::changes()).
///
/// `complete` is called with samples as the dataset gives them, many at a time, on the CPU, and may add to them
/// whatever depends on a sample alone. Inputs and targets of batches are on the device, weights of rows on the CPU.
///
/// Throws ConfigError where samples change at random in a way that no device has, or where `complete` makes something
/// of samples that change.
std::unique_ptr<Loader> make_resident_loader(std::shared_ptr<const Dataset> dataset,
                                             DistributedSampler::Options options, c10::Device device,
                                             std::function<void(Batch&)> complete);

}  // namespace phalanx
