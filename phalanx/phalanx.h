// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Phalanx as a library: distributed training in a program's own loop, with its own modules, optimizers and data.
///
///     auto world = phalanx::init();
///     phalanx::DistributedDataParallel ddp(model, world);
///     ...  loss.backward();  // averages the gradients over all ranks
///          optimizer.step();
///
/// Everything is in namespace phalanx. Errors are exceptions (framework/base/error.h). No header but mpi.h needs more
/// than LibTorch and the standard library.

#include "phalanx/checkpoint.h"                 // IWYU pragma: export
#include "phalanx/distributed_data_parallel.h"  // IWYU pragma: export
#include "phalanx/distributed_sampler.h"        // IWYU pragma: export
#include "phalanx/kernels.h"                    // IWYU pragma: export
#include "phalanx/launch.h"                     // IWYU pragma: export
#include "phalanx/optimizers.h"                 // IWYU pragma: export
#include "phalanx/parameter_server.h"           // IWYU pragma: export
#include "phalanx/version.h"                    // IWYU pragma: export
#include "phalanx/world.h"                      // IWYU pragma: export
