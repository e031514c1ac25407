#pragma once

#include "models/model.h"

namespace phalanx {

// Both before anything else has a view of the parameters.

/// Lays the weights of convolutions of images, [out, in, height, width], out as [out, height, width, in], shapes as
/// they were: so the products of images in channels_last need not reorder them in every step.
void weights_to_channels_last(Model& model);

/// Makes the floating-point parameters and buffers float64, with the values that they have.
void weights_to_double(Model& model);

}  // namespace phalanx
