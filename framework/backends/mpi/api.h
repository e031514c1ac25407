// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MPI's declarations, and the namespace for code that uses them.
///
/// Handles and constants of MPI differ between implementations, so the files of this folder that call MPI are compiled
/// twice: with the mpi.h of Open MPI, which the build links, and with the declarations of the standard ABI of MPI 5.0,
/// whose library is opened at run time (abi/mpi_abi.h). Each build has an inline namespace of its own, so a program may
/// contain both (builds.h).
#ifdef PHALANX_MPI_STANDARD_ABI
#include "framework/backends/mpi/abi/mpi_abi.h"
#define PHALANX_MPI_BUILD standard_abi
#else
#include <mpi.h>
#define PHALANX_MPI_BUILD open_mpi
#endif
