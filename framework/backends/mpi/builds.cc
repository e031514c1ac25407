// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/builds.h"

#include <map>

#include "framework/backends/mpi/abi/open_library.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/loaded_library.h"
#include "framework/comm/backend_plugin.h"

namespace phalanx::mpi {
namespace {

constexpr const char* kPlugin = "openmpi";

std::map<Kind, Build>& builds() {
  static std::map<Kind, Build> all;
  return all;
}

const Build* find_build(Kind kind) {
  const auto found = builds().find(kind);
  return found == builds().end() ? nullptr : &found->second;
}

bool has_open_mpi() { return find_build(Kind::kOpenMpi) != nullptr || has_backend_plugin(kPlugin); }

}  // namespace

bool add_build(Kind kind, const Build& build) {
  builds()[kind] = build;
  return true;
}

Kind kind_of_launcher(const Variables& variables, bool has_open_mpi, const std::function<bool()>& has_abi_library) {
  const auto is_set = [&](const char* name) { return variables(name).has_value(); };
  if (is_set("OMPI_COMM_WORLD_RANK")) return Kind::kOpenMpi;
  const bool pmi = is_set("PMI_RANK") || is_set("PMI_FD") || is_set("PMI_PORT");
  if (pmi && is_set("MPI_LOCALRANKID")) return Kind::kStandardAbi;  // Hydra
  if (pmi && has_abi_library()) return Kind::kStandardAbi;
  return has_open_mpi ? Kind::kOpenMpi : Kind::kStandardAbi;
}

const Build& build_of(Kind kind) {
  if (kind == Kind::kOpenMpi && find_build(kind) == nullptr) load_backend_plugin(kPlugin);
  if (const Build* build = find_build(kind)) return *build;
  if (kind == Kind::kOpenMpi) {
    throw ConfigError("backend mpi: Open MPI is needed, but neither is this program linked with it, nor is there " +
                      backend_plugin_path(kPlugin));
  }
  throw ConfigError("backend mpi: this program has no support for MPIs with the standard ABI, such as MPICH");
}

const Build& build_of_launcher() {
  const auto has_abi_library = [] { return open_library().handle != nullptr; };
  return build_of(kind_of_launcher(&environment, has_open_mpi(), has_abi_library));
}

std::string running_version() {
  for (const auto& [kind, build] : builds()) {
    if (const std::string version = build.library_version(); !version.empty()) return version;
  }
  return "";
}

}  // namespace phalanx::mpi
