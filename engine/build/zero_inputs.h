// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/task/task.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Returns a batch of one sample of zeros, with the positions that this rank has, for running a model before there are
/// samples.
Tensors zero_inputs(const Task& task, const Mesh& mesh);

}  // namespace phalanx
