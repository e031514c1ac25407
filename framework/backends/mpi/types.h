// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "framework/backends/mpi/api.h"
#include "framework/comm/operations/reduction.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Returns the MPI type that moves elements of `dtype`. MPI has no float16 and no bfloat16; they travel as unsigned
/// integers.
MPI_Datatype type_of(c10::ScalarType dtype);

/// Returns the MPI operation that combines elements of type_of(dtype): one of MPI's own or, for float16 and bfloat16,
/// one that calls Reduction. A mean is combined as a sum. Reduction::custom is not supported, because operations of MPI
/// have no context and do not keep the order of arguments. Thread-safe.
///
/// Operations that are created here are never freed. MPI does not require it, and there is no moment before
/// MPI_Finalize at which it is certain that no other thread uses them.
MPI_Op op_of(const Reduction& reduction, c10::ScalarType dtype);

/// Returns a type of which one element is `count` elements of `element`, which begin `offset` bytes after the address
/// of the buffer. It allows MPI, which counts in int, to move any number of elements. `most` is the largest count
/// inside the type. The type is committed. The caller frees it, which MPI allows while it is still in use.
MPI_Datatype make_run(MPI_Datatype element, MPI_Aint offset, std::int64_t count, std::int64_t most);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
