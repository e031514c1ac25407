// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/abi/open_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/loaded_library.h"

namespace phalanx::mpi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libmpi_abi.so.1";

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMayIsolate = false;
#else
constexpr bool kMayIsolate = true;
#endif

// Isolated libraries also call their own malloc instead of one that replaces it, so it is done only where it matters.
int open_flags() {
  const bool other_mpi = ::dlsym(RTLD_DEFAULT, "MPI_Init_thread") != nullptr;
  return RTLD_NOW | RTLD_LOCAL | (other_mpi && kMayIsolate ? RTLD_DEEPBIND : 0);
}

void add_places(std::vector<LibraryPlace>& places, const std::string& prefix, const std::string& reason) {
  for (const char* folder : {"lib", "lib64"}) places.push_back({prefix + "/" + folder, reason});
}

std::string describe(const std::vector<LibraryPlace>& places) {
  std::string text;
  for (const auto& place : places) text += "in " + place.folder + " (" + place.reason + "), ";
  return text + (places.empty() ? "" : "and ") + "where the dynamic linker looks (LD_LIBRARY_PATH)";
}

}  // namespace

std::vector<LibraryPlace> library_places(const std::optional<HydraProxy>& proxy, const Variables& variables) {
  std::vector<LibraryPlace> places;
  if (proxy && !proxy->prefix().empty()) add_places(places, proxy->prefix(), "of the mpiexec that started this rank");
  for (const char* name : {"MPI_HOME", "I_MPI_ROOT"}) {
    if (const auto prefix = variables(name); prefix && !prefix->empty()) add_places(places, *prefix, name);
  }
  return places;
}

OpenedLibrary open_library_in(const std::vector<LibraryPlace>& places) {
  OpenedLibrary opened;
  const auto open = [&](const std::string& path) {
    opened.handle = ::dlopen(path.c_str(), open_flags());
    opened.path = path;
    return opened.handle != nullptr;
  };
  std::error_code ignored;
  for (const auto& place : places) {
    const std::string path = place.folder + "/" + kLibrary;
    if (!fs::exists(path, ignored)) continue;
    if (!open(path)) opened.problem = path + " (" + place.reason + ") cannot be opened: " + link_error();
    return opened;
  }
  if (open(kLibrary)) return opened;
  opened.problem = std::string(kLibrary) + " was not found: looked " + describe(places) +
                   ". It is the library of the standard ABI of MPI 5.0, which MPICH has from version 5.0 on and Intel "
                   "MPI from 2021.18 on; use one of them or name its folder in MPI_HOME, start the ranks by Open MPI's "
                   "mpirun, or choose another backend";
  return opened;
}

const OpenedLibrary& open_library() {
  static const OpenedLibrary opened = [] {
    if (void* const loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD)) {
      return OpenedLibrary{.handle = loaded, .path = kLibrary};
    }
    return open_library_in(library_places(find_hydra_proxy(), &environment));
  }();
  return opened;
}

}  // namespace phalanx::mpi
