#pragma once

#include "models/model.h"

namespace phalanx {

/// Lays the weights of convolutions of images, [out, in, height, width], out as [out, height, width, in], shapes as
/// they were: so the products of images in channels_last need not reorder them in every step. Before anything else has
/// a view of them.
void weights_to_channels_last(Model& model);

}  // namespace phalanx
