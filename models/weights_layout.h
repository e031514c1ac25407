// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "models/model.h"

namespace phalanx {

// All before anything else has a view of the parameters.

/// Lays the weights of convolutions of images, [out, in, height, width], out as [out, height, width, in], shapes as
/// they were: so the products of images in channels_last need not reorder them in every step.
void weights_to_channels_last(Model& model);

/// Makes the floating-point parameters and buffers float64, with the values that they have.
void weights_to_double(Model& model);

/// Moves parameters and buffers to a device.
void move_weights(Model& model, const c10::Device& device);

}  // namespace phalanx
