// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/partition/slice.h"

namespace phalanx {

/// Writes the state of an optimizer, the learning rate and the number of updates as a safetensors file: a tensor for
/// each kind of state and each segment of a slice, named by parameter and place in it, so that it fits other slices.
/// `parts`: number of such files. Throws DataError.
void save_slice_state(Optimizer& optimizer, const std::vector<Slice>& slices, const std::string& path, int parts);

/// Reads the state for these slices from all parts, whose paths `path_of` returns. Throws DataError if a file is
/// missing or malformed, or if a parameter has no state in them.
void load_slice_state(Optimizer& optimizer, const std::vector<Slice>& slices,
                      const std::function<std::string(int part)>& path_of);

}  // namespace phalanx
