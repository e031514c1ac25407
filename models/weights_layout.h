// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "models/model.h"

namespace phalanx {

// All of these must be called before anything else has a view of the parameters.

/// Changes the memory layout of the weights of image convolutions, [out, in, height, width], to [out, height, width,
/// in]. Shapes do not change. Products with images in channels_last then need not reorder the weights in every step.
void weights_to_channels_last(Model& model);

/// Converts the floating-point parameters and buffers to float64.
void weights_to_double(Model& model);

/// Moves parameters and buffers to a device.
void move_weights(Model& model, const c10::Device& device);

}  // namespace phalanx
