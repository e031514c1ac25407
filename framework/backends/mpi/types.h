// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>
#include <mpi.h>

#include <cstdint>

#include "framework/comm/reduction.h"

namespace phalanx::mpi {

/// How MPI moves elements of `dtype`. MPI has no float16 and no bfloat16: to it they are unsigned integers.
MPI_Datatype type_of(c10::ScalarType dtype);

/// What MPI combines elements of type_of(dtype) with: its own operations, and for float16 and bfloat16 Reduction's. A
/// mean is a sum. Not for Reduction::custom: operations of MPI know neither context nor order of arguments of a user's.
/// Thread-safe.
///
/// Operations that are made here are never freed: MPI does not ask for it, and there is no moment before MPI_Finalize
/// of which could be said that no other thread uses them.
MPI_Op op_of(const Reduction& reduction, c10::ScalarType dtype);

/// A type of which one element is `count` elements of `element` that begin `offset` bytes behind the address it is used
/// with: how MPI, which counts in int, is told of any number. `most` is the largest count of one of its parts.
/// Committed; the caller frees it, which MPI allows while it is still in use.
MPI_Datatype make_run(MPI_Datatype element, MPI_Aint offset, std::int64_t count, std::int64_t most);

}  // namespace phalanx::mpi
