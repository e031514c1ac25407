// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// One sample of zeros, of the positions that this rank has, for a model that is tried before there are samples.
Tensors zero_inputs(const Task& task, const Mesh& mesh);

}  // namespace phalanx
