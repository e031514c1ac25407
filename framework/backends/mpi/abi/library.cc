// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <string>

#include "framework/backends/mpi/abi/open_library.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/base/error.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

#define PHALANX_MPI_DEFINE(name, ...) int (*name)(__VA_ARGS__) = nullptr;
PHALANX_MPI_FUNCTIONS(PHALANX_MPI_DEFINE)
#undef PHALANX_MPI_DEFINE

namespace {

constexpr int kAbiVersion = 1;

std::atomic<bool> is_loaded{false};

// Sets the pointers. Returns the names of functions that the library lacks.
std::string find_functions(void* library) {
  std::string missing;
  const auto find = [&](const char* name) {
    void* const function = ::dlsym(library, name);
    if (function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + name;
    return function;
  };
#define PHALANX_MPI_FIND(name, ...) name = reinterpret_cast<decltype(name)>(find(#name));
  PHALANX_MPI_FUNCTIONS(PHALANX_MPI_FIND)
#undef PHALANX_MPI_FIND
  return missing;
}

void require_version(const std::string& path) {
  int major = 0, minor = 0;
  MPI_Abi_get_version(&major, &minor);
  if (major == kAbiVersion) return;
  throw ConfigError("backend mpi: " + path + " has version " + std::to_string(major) + "." + std::to_string(minor) +
                    " of MPI's standard ABI, but this program needs version " + std::to_string(kAbiVersion));
}

}  // namespace

void load() {
  static std::mutex loading;
  const std::lock_guard lock(loading);
  if (is_loaded) return;
  const OpenedLibrary& library = open_library();
  if (library.handle == nullptr) throw ConfigError("backend mpi: " + library.problem);
  if (const std::string missing = find_functions(library.handle); !missing.empty()) {
    throw ConfigError("backend mpi: " + library.path + " lacks " + missing + "; use a newer version of this MPI");
  }
  require_version(library.path);
  is_loaded = true;
}

bool loaded() noexcept { return is_loaded; }

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
