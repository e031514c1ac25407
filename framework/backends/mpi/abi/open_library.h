// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/launch/hydra.h"
#include "framework/comm/launch/launch_environment.h"

namespace phalanx::mpi {

/// A folder that may contain libmpi_abi.so.1, the library of an MPI with the standard ABI of MPI 5.0.
struct LibraryPlace {
  std::string folder;
  std::string reason;  // why it is searched, for errors
};

/// Returns the folders in the order in which they are searched: those of the MPI that started this process, whose
/// Hydra is `proxy`; then those of MPI_HOME and I_MPI_ROOT.
std::vector<LibraryPlace> library_places(const std::optional<HydraProxy>& proxy, const Variables& variables);

/// The result of the search for the library.
struct OpenedLibrary {
  void* handle = nullptr;  // for dlsym(); null: there is no library
  std::string path{};      // as it was opened
  std::string problem{};   // why there is no library: where it was searched and what to do
};

/// Opens the library: the one that this process has loaded already, else the first in library_places(), else the one
/// that the dynamic linker finds. A library that is there but cannot be opened ends the search, since another MPI than
/// that of the launcher would be a surprise. The first call does this, the others return the same; thread-safe.
///
/// If the program contains another MPI, such as Open MPI, the functions of the two do not mix: neither sees those of
/// the other (RTLD_DEEPBIND, which the address sanitizer does not allow).
const OpenedLibrary& open_library();

/// Does the same for these places, each time, without an MPI that is already loaded.
OpenedLibrary open_library_in(const std::vector<LibraryPlace>& places);

}  // namespace phalanx::mpi
